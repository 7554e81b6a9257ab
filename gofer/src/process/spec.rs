//! The part of `config.json` (OCI runtime specification) that a gofer reads.

use std::collections::BTreeMap;
use std::path::PathBuf;

use serde_json::{Map, Value};

/// A container's specification. Relative paths have got the bundle's prefix.
#[derive(Debug)]
pub(crate) struct Spec {
    pub(crate) root: Root,
    pub(crate) mounts: Vec<Mount>,
    /// `process.cwd`; may be empty.
    pub(crate) cwd: PathBuf,
    /// `process.env`.
    pub(crate) env: Vec<String>,
    /// `linux.rootfsPropagation`; may be empty.
    pub(crate) rootfs_propagation: String,
    /// Paths of `linux.devices`.
    pub(crate) devices: Vec<PathBuf>,
    /// `hooks.createContainer`.
    pub(crate) create_container: Vec<Hook>,
    /// Other hooks' paths and arguments are looked at only to tell whether a GPU is asked for.
    pub(crate) prestart: Vec<Hook>,
    pub(crate) annotations: BTreeMap<String, String>,
}

#[derive(Debug)]
pub(crate) struct Root {
    pub(crate) path: PathBuf,
    pub(crate) readonly: bool,
}

/// One entry of `mounts`.
#[derive(Clone, Debug)]
pub(crate) struct Mount {
    /// Absolute.
    pub(crate) destination: PathBuf,
    pub(crate) kind: String,
    /// With the bundle's prefix where it was relative; may be empty.
    pub(crate) source: PathBuf,
    pub(crate) options: Vec<String>,
    /// Both lists of id mappings are there and not empty.
    pub(crate) id_mapped: bool,
    /// The whole object, `source` replaced, with whatever else it holds: what goes back to `runsc`.
    pub(crate) object: Map<String, Value>,
}

impl Mount {
    /// A bind mount with a source: what a gofer may have to serve.
    pub(crate) fn is_gofer_mount(&self) -> bool {
        let bind = |option: &String| option == "bind" || option == "rbind";
        !self.source.as_os_str().is_empty() && (self.kind == "bind" || self.options.iter().any(bind))
    }
}

/// One hook.
#[derive(Clone, Debug)]
pub(crate) struct Hook {
    pub(crate) path: PathBuf,
    pub(crate) args: Vec<String>,
    /// None: the gofer's own environment.
    pub(crate) env: Option<Vec<String>>,
    /// Seconds.
    pub(crate) timeout: Option<u64>,
}
