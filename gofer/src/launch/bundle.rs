//! Specifications: made from a root and mounts, and read for what takes a connection.

use std::fs;
use std::path::{Path, PathBuf};

use serde_json::{Map, Value, json};

use super::LaunchError;
use crate::contract::{Generation, Lower, MountConf, Upper};

/// A container's specification, as far as a gofer looks at it.
#[derive(Clone, Debug)]
pub struct Bundle {
    root: PathBuf,
    readonly: bool,
    mounts: Vec<Mount>,
    cwd: String,
    others: Map<String, Value>,
}

impl Bundle {
    /// A container whose root is `root`, relative to the bundle or absolute.
    #[must_use]
    pub fn new(root: impl Into<PathBuf>) -> Self {
        Self { root: root.into(), readonly: false, mounts: Vec::new(), cwd: "/".to_owned(), others: Map::new() }
    }

    /// With a root that cannot be written.
    #[must_use]
    pub fn readonly(mut self) -> Self {
        self.readonly = true;
        self
    }

    /// With one more mount.
    #[must_use]
    pub fn mount(mut self, mount: Mount) -> Self {
        self.mounts.push(mount);
        self
    }

    /// With another working directory than `/`.
    #[must_use]
    pub fn cwd(mut self, cwd: impl Into<String>) -> Self {
        self.cwd = cwd.into();
        self
    }

    /// With `value` as its member `key`, such as `hooks` or `annotations`.
    #[must_use]
    pub fn member(mut self, key: impl Into<String>, value: Value) -> Self {
        self.others.insert(key.into(), value);
        self
    }

    /// Writes it to `config.json` in `directory`, which is made if it is not there.
    ///
    /// # Errors
    /// A sentence, if that cannot be written.
    pub fn write(&self, directory: impl AsRef<Path>) -> Result<(), LaunchError> {
        let directory = directory.as_ref();
        let path = directory.join("config.json");
        let text = format!("{:#}\n", self.to_json());
        fs::create_dir_all(directory)
            .and_then(|()| fs::write(&path, text))
            .map_err(|error| LaunchError::new(format_args!("write {}", path.display()), error))
    }

    fn to_json(&self) -> Value {
        let mut spec = json!({
            "ociVersion": "1.0.2",
            "process": {"args": ["true"], "cwd": self.cwd, "user": {"uid": 0, "gid": 0}},
            "root": {"path": self.root, "readonly": self.readonly},
            "mounts": self.mounts.iter().map(Mount::to_json).collect::<Vec<_>>(),
            "linux": {},
        });
        for (key, value) in &self.others {
            spec[key] = value.clone();
        }
        spec
    }
}

/// One entry of `mounts`.
#[derive(Clone, Debug)]
pub struct Mount {
    kind: String,
    source: String,
    destination: String,
    options: Vec<String>,
    others: Map<String, Value>,
}

impl Mount {
    /// `source`, a file or a directory with all that is mounted in it, at `destination`.
    #[must_use]
    pub fn bind(destination: impl Into<String>, source: impl AsRef<Path>) -> Self {
        Self::of_kind("bind", destination, source).option("rbind")
    }

    /// Any other.
    #[must_use]
    pub fn of_kind(kind: impl Into<String>, destination: impl Into<String>, source: impl AsRef<Path>) -> Self {
        Self {
            kind: kind.into(),
            source: source.as_ref().display().to_string(),
            destination: destination.into(),
            options: Vec::new(),
            others: Map::new(),
        }
    }

    /// With one more option.
    #[must_use]
    pub fn option(mut self, option: impl Into<String>) -> Self {
        self.options.push(option.into());
        self
    }

    /// With `value` as its member `key`, such as `uidMappings`.
    #[must_use]
    pub fn member(mut self, key: impl Into<String>, value: Value) -> Self {
        self.others.insert(key.into(), value);
        self
    }

    fn to_json(&self) -> Value {
        let mut mount = json!({"destination": self.destination, "type": self.kind});
        if !self.source.is_empty() {
            mount["source"] = json!(self.source);
        }
        if !self.options.is_empty() {
            mount["options"] = json!(self.options);
        }
        for (key, value) in &self.others {
            mount[key] = value.clone();
        }
        mount
    }
}

/// The default configuration of each mount of a specification that has one, root first: all to be written.
pub(super) fn default_confs(spec: &str, generation: Generation) -> Result<Vec<MountConf>, LaunchError> {
    let spec: Value = serde_json::from_str(spec).map_err(|error| LaunchError::new("read config.json", error))?;
    let mounts = spec["mounts"].as_array().map(Vec::as_slice).unwrap_or_default();
    let plain = |lower| MountConf { lower, upper: Upper::None, size: None };
    let mounts = mounts.iter().filter_map(|mount| match lower_of(mount, generation) {
        Lower::None => None,
        lower => Some(plain(lower)),
    });
    Ok(std::iter::once(plain(Lower::Lisafs)).chain(mounts).collect())
}

/// Where a mount's files come from, if it has a configuration at all.
fn lower_of(mount: &Value, generation: Generation) -> Lower {
    let text = |key: &str| mount[key].as_str().unwrap_or_default();
    let options = mount["options"].as_array().map(Vec::as_slice).unwrap_or_default();
    let bind = text("type") == "bind" || options.iter().any(|option| *option == "bind" || *option == "rbind");
    if bind && !text("source").is_empty() {
        Lower::Lisafs
    } else if generation == Generation::E26 && text("type") == "erofs" {
        Lower::Erofs
    } else {
        Lower::None
    }
}
