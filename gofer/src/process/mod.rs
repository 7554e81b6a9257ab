//! The gofer of a `runsc` container: from its arguments to its end.

pub(crate) mod args;
mod descriptors;
mod ending;
mod environment;
mod flags;
mod globals;
mod hand_over;
mod log;
mod moment;
mod serving;
pub(crate) mod spec;

use std::env;
use std::fmt;
use std::io::{self, Write};
use std::process::ExitCode;

use gofer_early::{Mode, Options};

use self::args::{Args, Refusal, Wanted};
use self::environment::{Environment, OnUnknown};
use self::spec::Spec;
use crate::{confine, prepare};

/// Whether `runsc` wants its gofer: by the name that it gives it. What it then says is for [`args::parse`] to understand
/// or to refuse as the original would.
pub(crate) fn is_wanted() -> bool {
    env::args_os().next().is_some_and(|name| name == "runsc-gofer")
}

/// The gofer's life, or that of the original one of the same file. Not inlined: what its frame touched of the stack would
/// stay private memory of every other command.
#[inline(never)]
pub(crate) fn run(options: Option<Options>) -> ExitCode {
    let environment = Environment::read(env::vars_os());
    match options.map(|options| options.mode) {
        Some(Mode::Stock) => return end(&hand_over::hand_over()),
        Some(Mode::StockCapped) => return end(&hand_over::hand_over_capped()),
        Some(Mode::Ours) | None => {}
    }
    let args = match args::parse(env::args_os().skip(1)) {
        Ok(args) => args,
        Err(refusal) => return refuse(&refusal, options, &environment),
    };
    log::replace_standard_error(&args.log);
    live(args, environment)
}

/// Takes the arguments' word for everything from here on.
fn live(mut args: Args, environment: Environment) -> ExitCode {
    let strangers = args::close_strangers(&args);
    let logs = log::start(std::mem::take(&mut args.log), Some(args.generation));
    match strangers.and_then(|()| serve(&mut args, environment)) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            let code = error.code();
            logs.fatal(&error);
            code.into()
        }
    }
}

fn serve(args: &mut Args, environment: Environment) -> Result<(), StartError> {
    tracing::info!("gofer {}: {:?}", env!("CARGO_PKG_VERSION"), env::args_os().collect::<Vec<_>>());
    for warning in environment.warnings {
        tracing::warn!("{warning}");
    }
    if !std::mem::take(&mut args.donated.profiles).is_empty() {
        tracing::warn!("profiles and traces of Go are asked for; this gofer has none, and the files stay empty");
    }
    let spec = args.donated.spec.take().ok_or_else(|| StartError::sentence("flag --spec-fd is missing"))?;
    let mut spec = Spec::read(spec, &args.bundle)?;
    let prepared = prepare::run(args, &mut spec)?;
    drop(spec);
    let confined = confine::apply(args, prepared)?;
    let totals = serving::until_done(args, confined)?;
    if let Some(socket) = &args.donated.sentry_exit {
        ending::await_sandbox(socket);
    }
    // Held until here: the last reference to the ring shall be this process's, not the sandbox's.
    drop(args.donated.pin_ring.take());
    tracing::debug!("served {totals}");
    tracing::info!("exiting");
    Ok(())
}

/// A command line that is not understood is no outage where the original gofer is at hand.
fn refuse(refusal: &Refusal, options: Option<Options>, environment: &Environment) -> ExitCode {
    let by_file = options.map_or(OnUnknown::Fail, |options| match options.on_unknown {
        gofer_early::OnUnknown::Stock => OnUnknown::Stock,
        gofer_early::OnUnknown::Fail => OnUnknown::Fail,
    });
    let on_unknown = environment.on_unknown.unwrap_or(by_file);
    let log_args = refusal.logs();
    let stock = refusal.unknown && options.is_some() && on_unknown == OnUnknown::Stock;
    if let (Some(wanted), false) = (refusal.wanted, stock) {
        return answer(wanted);
    }
    if !stock {
        log::replace_standard_error(&log_args);
    }
    let logs = log::start(log_args, None);
    if stock {
        tracing::warn!("{}; the original gofer of this file takes over", refusal.error);
        let error = hand_over::hand_over();
        logs.fatal(&error);
        return error.code().into();
    }
    let code = refusal.error.code();
    logs.fatal(&refusal.error);
    code.into()
}

/// To people, who have given the flag before the word `gofer`; `runsc` never does.
fn answer(wanted: Wanted) -> ExitCode {
    let version = env!("CARGO_PKG_VERSION");
    // A closed standard output is nobody's loss.
    let _ = match wanted {
        Wanted::Version => writeln!(io::stdout(), "gofer {version}"),
        Wanted::Help => writeln!(
            io::stdout(),
            "gofer {version}: under this name it serves the files of a container, and is started by runsc with flags \
             that only runsc can give it.\nFor people: gofer --help"
        ),
    };
    ExitCode::SUCCESS
}

/// Where there is no log yet.
fn end(error: &StartError) -> ExitCode {
    eprintln!("gofer: {error}");
    error.code().into()
}

/// Why the process cannot go on: one sentence that names the step and its object.
#[derive(Debug)]
pub(crate) struct StartError {
    text: String,
    /// Exit code: 128, or 2 where the original gofer has that.
    code: u8,
}

impl StartError {
    /// `cannot ACTION: CAUSE`, exit code 128.
    pub(crate) fn new(action: impl fmt::Display, cause: impl fmt::Display) -> Self {
        Self::sentence(format!("cannot {action}: {cause}"))
    }

    /// A sentence as it is, exit code 128.
    pub(crate) fn sentence(text: impl Into<String>) -> Self {
        Self { text: text.into(), code: 128 }
    }

    /// The same with another exit code.
    pub(crate) fn with_code(self, code: u8) -> Self {
        Self { code, ..self }
    }

    /// Exit code of the process.
    pub(crate) fn code(&self) -> u8 {
        self.code
    }
}

impl fmt::Display for StartError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl std::error::Error for StartError {}
