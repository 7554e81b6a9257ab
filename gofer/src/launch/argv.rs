//! Arguments of a generation, and the descriptors that they name, numbered in the order in which they appear.

use std::os::fd::OwnedFd;

use super::{LaunchError, Launcher};
use crate::contract::{Generation, Lower, MountConf, Upper};

/// First number of a donated descriptor.
const FIRST: usize = 3;

/// A command line under construction.
#[derive(Debug)]
pub(super) struct Argv {
    pub(super) words: Vec<String>,
    /// Descriptors to donate: the first becomes number 3.
    pub(super) donated: Vec<OwnedFd>,
}

impl Argv {
    /// The name, the global flags, and `gofer` with its bundle.
    pub(super) fn new(launcher: &mut Launcher, confs: &[MountConf]) -> Result<Self, LaunchError> {
        let mut argv = Self { words: vec!["runsc-gofer".to_owned()], donated: Vec::new() };
        argv.words.append(&mut launcher.globals);
        argv.donate_some("log-fd", launcher.log.take().map(OwnedFd::from));
        argv.donate_some("debug-log-fd", launcher.debug_log.take().map(OwnedFd::from));
        let bundle = launcher.bundle.to_str();
        let bundle = bundle.ok_or_else(|| LaunchError::new("name the bundle in an argument", "it is not UTF-8"))?;
        argv.words.extend(["gofer", "--bundle", bundle].map(str::to_owned));
        if launcher.generation != Generation::E22 {
            let confs: Vec<_> = confs.iter().map(text).collect();
            argv.words.push(format!("--gofer-mount-confs={}", confs.join(",")));
        }
        Ok(argv)
    }

    /// A flag that names a descriptor.
    pub(super) fn donate(&mut self, flag: &str, descriptor: impl Into<OwnedFd>) {
        self.words.push(format!("--{flag}={}", FIRST + self.donated.len()));
        self.donated.push(descriptor.into());
    }

    /// The same, where there is one.
    pub(super) fn donate_some(&mut self, flag: &str, descriptor: Option<OwnedFd>) {
        if let Some(descriptor) = descriptor {
            self.donate(flag, descriptor);
        }
    }
}

/// A configuration as `runsc` writes it.
fn text(conf: &MountConf) -> String {
    let lower = match conf.lower {
        Lower::None => "none",
        Lower::Lisafs => "lisafs",
        Lower::Erofs => "erofs",
    };
    let upper = match conf.upper {
        Upper::None => "none",
        Upper::Memory => "memory",
        Upper::SelfBacked => "self",
        Upper::Anon => "anon",
    };
    match &conf.size {
        Some(size) => format!("{lower}:{upper}:size={size}"),
        None => format!("{lower}:{upper}"),
    }
}
