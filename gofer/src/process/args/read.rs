//! From words to [`Args`]: flags, then the generation, then values, and descriptors last, when nothing can be refused
//! as unknown any more.

use std::ffi::{OsStr, OsString};
use std::os::fd::RawFd;
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;

use gofer::contract::{Generation, MountConf};
use gofer::{CharDevices, HostFifo, HostSockets};

use super::{Args, DeviceProxies, Donated, LogArgs, LogFormat, Overlay, Wanted};
use crate::process::StartError;
use crate::process::descriptors::Unowned;
use crate::process::flags::{self, Flag, Kind, Values};
use crate::process::globals;

/// A sentence about the command line.
pub(super) struct Fault {
    pub(super) unknown: bool,
    pub(super) wanted: Option<Wanted>,
    pub(super) error: StartError,
}

/// Of no known generation.
fn unknown(text: impl Into<String>) -> Fault {
    Fault { unknown: true, wanted: None, error: StartError::sentence(text) }
}

/// Of a known generation, but wrong: its own gofer would refuse it as well.
fn usage(text: impl Into<String>) -> Fault {
    Fault { unknown: false, wanted: None, error: StartError::sentence(text) }
}

/// The whole command line, without the program's own name.
pub(super) fn read(argv: &[OsString]) -> Result<Args, Fault> {
    let mut globals = Values::default();
    let rest = flags::parse(globals::find, argv, &mut globals).map_err(|bad| {
        let fault = unknown(bad.to_string());
        Fault { error: fault.error.with_code(2), ..fault }
    })?;
    let words = [("help", Wanted::Help), ("h", Wanted::Help), ("version", Wanted::Version)];
    if let Some((name, wanted)) = words.into_iter().find(|(name, _)| globals.bool(name)) {
        return Err(Fault { wanted: Some(wanted), ..unknown(format!("flag --{name} is not for a gofer")) });
    }
    let rest = match rest.split_first() {
        Some((word, rest)) if word == "gofer" => rest,
        Some((word, _)) => return Err(unknown(format!("sub-command {word:?} is not known"))),
        None => return Err(unknown("there is no sub-command")),
    };
    let mut given = Values::default();
    let known = |name: &[u8]| GOFER_FLAGS.iter().map(|(flag, _)| *flag).find(|flag| flag.name.as_bytes() == name);
    let words = flags::parse(known, rest, &mut given).map_err(|bad| unknown(bad.to_string()))?;
    let generation = generation(&given, words)?;
    build(&globals, &given, generation, words)
}

/// Tells the generation by what is there, before any of it counts.
fn generation(given: &Values, words: &[OsString]) -> Result<Generation, Fault> {
    let confs = is_given(given, "gofer-mount-confs");
    let rpc = is_given(given, "rpc-fd");
    let chroot = is_given(given, "sync-chroot-fd");
    let generation = match (confs, rpc, chroot) {
        (false, false, false) => Generation::E22,
        (true, false, false) => Generation::E24,
        (true, true, true) => Generation::E26,
        (false, true, _) => return Err(unknown("flag --rpc-fd is there without --gofer-mount-confs")),
        (false, _, true) => return Err(unknown("flag --sync-chroot-fd is there without --gofer-mount-confs")),
        (true, true, false) => return Err(unknown("flag --rpc-fd is there without --sync-chroot-fd")),
        (true, false, true) => return Err(unknown("flag --sync-chroot-fd is there without --rpc-fd")),
    };
    match (generation, words) {
        (Generation::E26, [_]) => {}
        (Generation::E26, []) => return Err(unknown("the container's id is missing")),
        (Generation::E26, [_, word, ..]) | (_, [word, ..]) => {
            return Err(unknown(format!("argument {word:?} has no meaning beside these flags")));
        }
        (_, []) => {}
    }
    let foreign = |&&(flag, generations): &&(Flag, &[Generation])| {
        is_given(given, flag.name) && !generations.contains(&generation)
    };
    if let Some((flag, _)) = GOFER_FLAGS.iter().find(foreign) {
        return Err(unknown(format!("flag --{} does not belong to the others, which are {generation:?}'s", flag.name)));
    }
    if generation == Generation::E22 && given.all("io-fds").any(|value| value.as_bytes().contains(&b',')) {
        return Err(unknown("flag --io-fds takes one number"));
    }
    Ok(generation)
}

/// A descriptor of -1 is none.
fn is_given(given: &Values, name: &str) -> bool {
    given.names().any(|of| of == name) && !(name.ends_with("-fd") && given.int(name) == Some(-1))
}

fn build(globals: &Values, given: &Values, generation: Generation, words: &[OsString]) -> Result<Args, Fault> {
    let bundle = PathBuf::from(given.last("bundle").unwrap_or_default());
    let log = LogWishes::read(globals)?;
    let confs = confs(given, generation)?;
    let host_sockets = host_sockets(globals)?;
    let host_fifo = choose(globals, "host-fifo", &[("none", HostFifo::None), ("open", HostFifo::Open)])?;
    let char_devices = match generation {
        // They have no such policy.
        Generation::E22 | Generation::E24 => CharDevices::Passthrough,
        Generation::E26 => choose(globals, "character-device-policy", CHAR_DEVICES)?,
    };
    let overlay = if generation == Generation::E22 { overlay(globals)? } else { Overlay::default() };
    if is_given(given, "proc-mount-sync-fd") {
        return Err(unknown("flag --proc-mount-sync-fd is the original gofer's own"));
    }
    let uid = id(given, "uid")?;
    let gid = id(given, "gid")?;
    if bundle.as_os_str().is_empty() {
        return Err(usage("flag --bundle is missing"));
    }
    let (donated, log) = donate(given, &log)?;
    let is_true = |name: &str| given.last(name).is_none() || given.bool(name);
    Ok(Args {
        generation,
        id: words.first().map(|id| id.to_string_lossy().into_owned()),
        bundle,
        confs,
        donated,
        host_sockets,
        host_fifo,
        char_devices,
        directfs: generation != Generation::E22 && (globals.last("directfs").is_none() || globals.bool("directfs")),
        overlay,
        fd_limit: globals.int("fdlimit").and_then(|limit| u64::try_from(limit).ok()),
        devices: DeviceProxies {
            nvproxy: globals.bool("nvproxy"),
            nvproxy_docker: globals.bool("nvproxy-docker"),
            tpuproxy: globals.bool("tpuproxy"),
            rdmaproxy: globals.bool("rdmaproxy"),
        },
        uid,
        gid,
        apply_caps: is_true("apply-caps"),
        setup_root: is_true("setup-root"),
        unsafe_nonroot: globals.bool("TESTONLY-unsafe-nonroot"),
        log,
    })
}

fn confs(given: &Values, generation: Generation) -> Result<Vec<MountConf>, Fault> {
    let mut confs = Vec::new();
    for list in given.all("gofer-mount-confs") {
        for text in list.to_string_lossy().split(',') {
            let conf = MountConf::parse(text, generation);
            confs.push(conf.map_err(|error| unknown(format!("flag --gofer-mount-confs: {error}")))?);
        }
    }
    Ok(confs)
}

fn host_sockets(globals: &Values) -> Result<HostSockets, Fault> {
    let sockets = choose(globals, "host-uds", HOST_SOCKETS)?;
    match (globals.bool("fsgofer-host-uds"), sockets) {
        (false, _) => Ok(sockets),
        (true, HostSockets::None) => Ok(HostSockets::Open),
        (true, _) => Err(usage("flags --fsgofer-host-uds and --host-uds are both there")),
    }
}

/// E22's: what the sandbox overlays is served read-only.
fn overlay(globals: &Values) -> Result<Overlay, Fault> {
    let medium = globals.last("overlay2").unwrap_or_else(|| OsStr::new("none")).to_string_lossy();
    let overlay = match medium.split_once(':') {
        None if medium == "none" || medium.is_empty() => Overlay::default(),
        Some(("root", path)) if !path.is_empty() => Overlay { root: true, mounts: false },
        Some(("all", path)) if !path.is_empty() => Overlay { root: true, mounts: true },
        _ => return Err(unknown(format!("flag --overlay2 cannot be {medium:?}"))),
    };
    match (globals.bool("overlay"), overlay.root) {
        (false, _) => Ok(overlay),
        (true, false) => Ok(Overlay { root: true, mounts: true }),
        (true, true) => Err(usage("flags --overlay and --overlay2 are both there")),
    }
}

/// One of a flag's words; the first if it is not given.
fn choose<T: Copy>(globals: &Values, name: &str, words: &[(&str, T)]) -> Result<T, Fault> {
    let Some(value) = globals.last(name) else { return Ok(words[0].1) };
    let found = words.iter().find(|(word, _)| value == *word);
    // A word of tomorrow may be a policy that is stricter than all we know.
    found.map(|(_, meaning)| *meaning).ok_or_else(|| unknown(format!("flag --{name} cannot be {value:?}")))
}

fn id(given: &Values, name: &str) -> Result<u32, Fault> {
    let id = given.int(name).unwrap_or(0);
    u32::try_from(id).map_err(|_| usage(format!("flag --{name}: {id} is no id")))
}

/// What the flags say about logs, with numbers still.
struct LogWishes {
    errors: Option<RawFd>,
    debug: Option<RawFd>,
    panics: Option<RawFd>,
    format: LogFormat,
    verbose: bool,
}

impl LogWishes {
    fn read(globals: &Values) -> Result<Self, Fault> {
        let debug = number(globals, "debug-log-fd")?;
        let format = match globals.last("debug-log-format") {
            None => LogFormat::default(),
            Some(word) => match word.to_str().and_then(LogFormat::named) {
                Some(format) => format,
                None if debug.is_none() => LogFormat::default(),
                None => return Err(usage(format!("flag --debug-log-format cannot be {word:?}"))),
            },
        };
        let filter = globals.last("debug-command").unwrap_or_default().to_string_lossy();
        Ok(Self {
            errors: number(globals, "log-fd")?,
            debug,
            panics: number(globals, "panic-log-fd")?,
            format,
            verbose: globals.bool("debug") && admits_gofer(&filter),
        })
    }
}

/// `--debug-command`: a list of commands, of which a leading `!` makes the list of those that are left out.
fn admits_gofer(filter: &str) -> bool {
    let (list, wanted) = match filter.strip_prefix('!') {
        Some(list) => (list, false),
        None => (filter, true),
    };
    filter.is_empty() || list.split(',').any(|command| command == "gofer") == wanted
}

/// Makes each number an owned descriptor, all or none.
fn donate(given: &Values, log: &LogWishes) -> Result<(Donated, LogArgs), Fault> {
    let mut named = vec![("log-fd", log.errors), ("debug-log-fd", log.debug), ("panic-log-fd", log.panics)];
    for (flag, _) in GOFER_FLAGS.iter().filter(|(flag, _)| flag.name.ends_with("-fd")) {
        named.push((flag.name, number(given, flag.name)?));
    }
    let io = io_numbers(given)?;
    named.extend(io.iter().map(|&number| ("io-fds", Some(number))));
    let has = |name: &str| named.iter().any(|&(of, number)| of == name && number.is_some());
    if !has("spec-fd") {
        return Err(usage("flag --spec-fd is missing"));
    }
    // With a device and a root that is an image, nothing else is served.
    if !has("io-fds") && !has("dev-io-fd") {
        return Err(usage("flag --io-fds is missing"));
    }

    let numbers = named.iter().filter_map(|(_, number)| *number).collect();
    let mut unowned = Unowned::claim(numbers).map_err(|(number, why)| {
        let names: Vec<&str> = named.iter().filter(|(_, of)| *of == Some(number)).map(|(name, _)| *name).collect();
        usage(format!("flag --{}: descriptor {number} {why}", names.join(", --")))
    })?;
    let mut own = |name: &str| {
        let (_, number) = named.iter().find(|(of, _)| *of == name)?;
        unowned.take((*number)?)
    };
    let donated = Donated {
        spec: own("spec-fd"),
        mounts: own("mounts-fd"),
        dev: own("dev-io-fd"),
        rpc: own("rpc-fd"),
        sync_userns: own("sync-userns-fd"),
        sync_nvproxy: own("sync-nvproxy-fd"),
        sync_chroot: own("sync-chroot-fd"),
        pin_ring: own("pin-ring-fd"),
        sentry_exit: own("sync-sentry-exit-fd"),
        profiles: PROFILES.iter().filter_map(|name| own(name)).collect(),
        io: Vec::new(),
    };
    let log = LogArgs {
        errors: own("log-fd"),
        debug: own("debug-log-fd"),
        panics: own("panic-log-fd"),
        format: log.format,
        verbose: log.verbose,
    };
    let io = io.into_iter().filter_map(|number| unowned.take(number)).collect();
    Ok((Donated { io, ..donated }, log))
}

/// The number of a descriptor; -1 is none.
fn number(values: &Values, name: &str) -> Result<Option<RawFd>, Fault> {
    values.int(name).map_or(Ok(None), |number| checked(name, number))
}

fn io_numbers(given: &Values) -> Result<Vec<RawFd>, Fault> {
    let lists = given.all("io-fds").filter_map(OsStr::to_str);
    let numbers = lists.flat_map(|list| list.split(',')).filter_map(|number| number.parse().ok());
    numbers.filter_map(|number| checked("io-fds", number).transpose()).collect()
}

fn checked(name: &str, number: i64) -> Result<Option<RawFd>, Fault> {
    match RawFd::try_from(number) {
        Ok(-1) => Ok(None),
        Ok(number) if number >= 0 => Ok(Some(number)),
        _ => Err(usage(format!("flag --{name}: {number} is no descriptor"))),
    }
}

const HOST_SOCKETS: &[(&str, HostSockets)] = &[
    ("none", HostSockets::None),
    ("open", HostSockets::Open),
    ("create", HostSockets::Create),
    ("all", HostSockets::All),
];

const CHAR_DEVICES: &[(&str, CharDevices)] = &[
    ("emulated-only", CharDevices::EmulatedOnly),
    ("prefer-emulated", CharDevices::PreferEmulated),
    ("passthrough", CharDevices::Passthrough),
];

const ALL: &[Generation] = &[Generation::E22, Generation::E24, Generation::E26];
const FROM_E24: &[Generation] = &[Generation::E24, Generation::E26];
const E24: &[Generation] = &[Generation::E24];
const E26: &[Generation] = &[Generation::E26];

/// Flags after the word `gofer`, and whose they are. What ends in `-fd` is a descriptor, and -1 none.
const GOFER_FLAGS: &[(Flag, &[Generation])] = &[
    (Flag::new("bundle", Kind::Text), ALL),
    (Flag::new("io-fds", Kind::Decimals), ALL),
    (Flag::new("spec-fd", Kind::Int), ALL),
    (Flag::new("mounts-fd", Kind::Int), ALL),
    (Flag::new("apply-caps", Kind::Bool), ALL),
    (Flag::new("setup-root", Kind::Bool), ALL),
    (Flag::new("sync-userns-fd", Kind::Int), ALL),
    (Flag::new("gofer-mount-confs", Kind::Text), FROM_E24),
    (Flag::new("dev-io-fd", Kind::Int), FROM_E24),
    (Flag::new("sync-nvproxy-fd", Kind::Int), E24),
    (Flag::new("rpc-fd", Kind::Int), E26),
    (Flag::new("uid", Kind::Int), E26),
    (Flag::new("gid", Kind::Int), E26),
    (Flag::new("sync-chroot-fd", Kind::Int), E26),
    (Flag::new("proc-mount-sync-fd", Kind::Int), FROM_E24),
    (Flag::new("pin-ring-fd", Kind::Int), E26),
    (Flag::new("sync-sentry-exit-fd", Kind::Int), E26),
    (Flag::new("profile-block-fd", Kind::Int), ALL),
    (Flag::new("profile-cpu-fd", Kind::Int), ALL),
    (Flag::new("profile-heap-fd", Kind::Int), ALL),
    (Flag::new("profile-mutex-fd", Kind::Int), ALL),
    (Flag::new("trace-fd", Kind::Int), ALL),
];

/// Outputs of Go's profiler.
const PROFILES: [&str; 5] = ["profile-block-fd", "profile-cpu-fd", "profile-heap-fd", "profile-mutex-fd", "trace-fd"];
