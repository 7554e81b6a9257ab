//! Which mounts are served, how, and that the runtime has counted alike.

use std::os::fd::OwnedFd;
use std::path::PathBuf;

use super::Connection;
use crate::process::StartError;
use crate::process::args::Args;
use crate::process::spec::Spec;
use gofer::contract::{Generation, MountConf};

/// What to do with the root and with each mount of the spec.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Plan {
    /// None: the root is not served.
    pub(super) root: Option<Access>,
    /// One for each mount; None: not the gofer's business.
    pub(super) mounts: Vec<Option<Access>>,
}

/// How something is served.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Access {
    /// The sandbox keeps the changes, so that the host's side is read-only.
    pub(super) overlaid: bool,
}

impl Plan {
    pub(super) fn new(args: &Args, spec: &Spec) -> Result<Self, StartError> {
        let plan =
            if args.generation == Generation::E22 { Self::by_overlay(args, spec) } else { Self::by_confs(args, spec)? };
        let wanted = usize::from(plan.root.is_some()) + plan.mounts.iter().flatten().count();
        let given = args.donated.io.len();
        if wanted != given {
            let text = format!("the specification asks for {wanted} connections, but --io-fds names {given}");
            return Err(StartError::sentence(text));
        }
        Ok(plan)
    }

    fn by_overlay(args: &Args, spec: &Spec) -> Self {
        let access = Access { overlaid: args.overlay.mounts };
        Self {
            root: Some(Access { overlaid: args.overlay.root }),
            mounts: spec.mounts.iter().map(|mount| mount.is_gofer_mount().then_some(access)).collect(),
        }
    }

    fn by_confs(args: &Args, spec: &Spec) -> Result<Self, StartError> {
        let configured: Vec<bool> = spec
            .mounts
            .iter()
            .map(|mount| mount.is_gofer_mount() || (args.generation == Generation::E26 && mount.kind == "erofs"))
            .collect();
        let wanted = 1 + configured.iter().filter(|one| **one).count();
        let given = args.confs.len();
        if wanted != given {
            let text = format!(
                "the specification asks for {wanted} mount configurations, but --gofer-mount-confs has {given}"
            );
            return Err(StartError::sentence(text));
        }
        let mut confs = args.confs.iter();
        let root = confs.next().and_then(access);
        let mounts = configured.iter().map(|one| if *one { confs.next().and_then(access) } else { None }).collect();
        Ok(Self { root, mounts })
    }

    /// The host's mount of the root is read-only.
    pub(super) fn root_read_only(&self, spec: &Spec) -> bool {
        spec.root.readonly || self.root.is_some_and(|access| access.overlaid)
    }

    /// What each connection serves: `places` are those of the root and the mounts that are served, whose destinations in
    /// `spec` are resolved by now.
    pub(super) fn connections(&self, spec: &Spec, places: Vec<OwnedFd>) -> Vec<Connection> {
        let root = self.root.map(|_| (PathBuf::from("/"), self.root_read_only(spec)));
        let mounts = spec.mounts.iter().zip(&self.mounts).filter_map(|(mount, access)| {
            let read_only = access.as_ref()?.overlaid || mount.options.iter().any(|option| option == "ro");
            Some((mount.destination.clone(), read_only))
        });
        let served = root.into_iter().chain(mounts).zip(places);
        served.map(|((path, read_only), place)| Connection { path, place, read_only }).collect()
    }
}

fn access(conf: &MountConf) -> Option<Access> {
    conf.is_served().then(|| Access { overlaid: conf.is_overlaid() })
}
