//! The part of `config.json` (OCI runtime specification) that a gofer reads.

use std::collections::BTreeMap;
use std::fmt::Display;
use std::fs::File;
use std::io::Read;
use std::os::fd::OwnedFd;
use std::path::{Component, Path, PathBuf};

use serde_json::{Map, Value};

use super::StartError;

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

impl Spec {
    /// Reads `config.json` from its beginning.
    ///
    /// `runsc` has validated the same file, so only what protects this process is checked: its size, its form, a root,
    /// and absolute destinations.
    pub(crate) fn read(fd: OwnedFd, bundle: &Path) -> Result<Self, StartError> {
        let refuse = |cause: &dyn Display| StartError::new("read the container's specification", cause);
        rustix::fs::seek(&fd, rustix::fs::SeekFrom::Start(0)).map_err(|errno| refuse(&errno))?;
        let mut bytes = Vec::new();
        File::from(fd).take(MAX_BYTES + 1).read_to_end(&mut bytes).map_err(|error| refuse(&error))?;
        if bytes.len() as u64 > MAX_BYTES {
            return Err(refuse(&format_args!("it is larger than {MAX_BYTES} bytes")));
        }
        let value: Value = serde_json::from_slice(&bytes).map_err(|error| refuse(&error))?;
        Self::from_json(&value, bundle).map_err(|cause| refuse(&cause))
    }

    fn from_json(value: &Value, bundle: &Path) -> Result<Self, String> {
        let spec = Object::of(value, "the specification")?;
        let root = spec.object("root")?;
        let path = root.text("path")?;
        if path.is_empty() {
            return Err("root.path is missing".to_owned());
        }
        let process = spec.object("process")?;
        let linux = spec.object("linux")?;
        let hooks = spec.object("hooks")?;
        Ok(Self {
            root: Root { path: in_bundle(bundle, &path), readonly: root.bool("readonly")? },
            mounts: spec.list("mounts", |mount| Mount::from_json(mount, bundle))?,
            cwd: process.text("cwd")?.into(),
            env: process.texts("env")?.unwrap_or_default(),
            rootfs_propagation: linux.text("rootfsPropagation")?,
            devices: linux.list("devices", |device| Ok(device.text("path")?.into()))?,
            create_container: hooks.list("createContainer", Hook::from_json)?,
            prestart: hooks.list("prestart", Hook::from_json)?,
            annotations: spec.object("annotations")?.all_texts()?,
        })
    }
}

impl Mount {
    fn from_json(mount: &Object<'_>, bundle: &Path) -> Result<Self, String> {
        let destination = PathBuf::from(mount.text("destination")?);
        if !destination.is_absolute() {
            return Err(format!("{}: destination {destination:?} is not absolute", mount.name));
        }
        let mut object = mount.fields.cloned().unwrap_or_default();
        let mut source = PathBuf::from(mount.text("source")?);
        if !source.as_os_str().is_empty() && source.is_relative() {
            source = in_bundle(bundle, &source);
            let text = source.to_str().ok_or("the path of the bundle is not UTF-8, and a mount's source is in it")?;
            object.insert("source".to_owned(), Value::from(text));
        }
        let mapped = |name| mount.value(name).and_then(Value::as_array).is_some_and(|list| !list.is_empty());
        Ok(Self {
            destination,
            kind: mount.text("type")?,
            source,
            options: mount.texts("options")?.unwrap_or_default(),
            id_mapped: mapped("uidMappings") && mapped("gidMappings"),
            object,
        })
    }
}

impl Hook {
    fn from_json(hook: &Object<'_>) -> Result<Self, String> {
        let timeout = match hook.value("timeout") {
            None => None,
            Some(value) => Some(value.as_u64().ok_or_else(|| hook.wrong("timeout", "a number of seconds"))?),
        };
        Ok(Self {
            path: hook.text("path")?.into(),
            args: hook.texts("args")?.unwrap_or_default(),
            env: hook.texts("env")?,
            timeout,
        })
    }
}

/// A relative path gets the bundle's prefix, as Go joins paths: `.` and `..` go by the text, since what `runsc`
/// compares later was made that way.
fn in_bundle(bundle: &Path, path: impl AsRef<Path>) -> PathBuf {
    if path.as_ref().is_absolute() {
        return path.as_ref().to_owned();
    }
    let mut joined = PathBuf::new();
    for component in bundle.join(path).components() {
        match (component, joined.components().next_back()) {
            (Component::CurDir, _) | (Component::ParentDir, Some(Component::RootDir)) => {}
            (Component::ParentDir, Some(Component::Normal(_))) => {
                joined.pop();
            }
            _ => joined.push(component),
        }
    }
    if joined.as_os_str().is_empty() { PathBuf::from(".") } else { joined }
}

/// A JSON object with its place in the document; as in Go, `null` is as good as nothing.
struct Object<'a> {
    name: String,
    fields: Option<&'a Map<String, Value>>,
}

impl<'a> Object<'a> {
    fn of(value: &'a Value, name: impl Into<String>) -> Result<Self, String> {
        let name = name.into();
        match value {
            Value::Object(fields) => Ok(Self { name, fields: Some(fields) }),
            _ => Err(format!("{name} is not an object")),
        }
    }

    fn value(&self, field: &str) -> Option<&'a Value> {
        self.fields?.get(field).filter(|value| !value.is_null())
    }

    fn wrong(&self, field: &str, kind: &str) -> String {
        format!("{}: {field} is not {kind}", self.name)
    }

    fn object(&self, field: &str) -> Result<Self, String> {
        match self.value(field) {
            None => Ok(Self { name: field.to_owned(), fields: None }),
            Some(value) => Self::of(value, field),
        }
    }

    fn text(&self, field: &str) -> Result<String, String> {
        match self.value(field) {
            None => Ok(String::new()),
            Some(value) => value.as_str().map(str::to_owned).ok_or_else(|| self.wrong(field, "a text")),
        }
    }

    fn bool(&self, field: &str) -> Result<bool, String> {
        self.value(field).map_or(Ok(false), |value| value.as_bool().ok_or_else(|| self.wrong(field, "true or false")))
    }

    fn texts(&self, field: &str) -> Result<Option<Vec<String>>, String> {
        let Some(value) = self.value(field) else { return Ok(None) };
        let texts = value
            .as_array()
            .and_then(|list| list.iter().map(|text| text.as_str().map(str::to_owned)).collect::<Option<Vec<_>>>());
        texts.map(Some).ok_or_else(|| self.wrong(field, "a list of texts"))
    }

    /// Its own values, where all are texts.
    fn all_texts(&self) -> Result<BTreeMap<String, String>, String> {
        let fields = self.fields.into_iter().flatten();
        fields.map(|(name, _)| Ok((name.clone(), self.text(name)?))).collect()
    }

    fn list<T>(&self, field: &str, read: impl Fn(&Object<'_>) -> Result<T, String>) -> Result<Vec<T>, String> {
        let Some(value) = self.value(field) else { return Ok(Vec::new()) };
        let list = value.as_array().ok_or_else(|| self.wrong(field, "a list"))?;
        let items = list.iter().enumerate();
        items.map(|(index, item)| read(&Object::of(item, format!("{field}[{index}]"))?)).collect()
    }
}

/// Far more than any container needs, and little enough to be no danger to the host.
const MAX_BYTES: u64 = 64 << 20;

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::*;

    fn read(text: &str) -> Result<Spec, StartError> {
        let mut file = tempfile::tempfile().unwrap();
        file.write_all(text.as_bytes()).unwrap();
        // Left at its end, as an earlier reader would leave it.
        Spec::read(OwnedFd::from(file), Path::new("/bundle"))
    }

    #[test]
    fn relative_sources_of_every_mount_get_the_prefix_of_the_bundle() {
        let spec = read(
            r#"{"root":{"path":"rootfs"},"mounts":[
                {"destination":"/proc","type":"proc","source":"proc"},
                {"destination":"/a","type":"bind","source":"./x/../a","options":["ro"]},
                {"destination":"/b","type":"bind","source":"/b","other":{"kept":1}},
                {"destination":"/t","type":"tmpfs"}]}"#,
        )
        .unwrap();
        assert_eq!(spec.root.path, Path::new("/bundle/rootfs"));
        let sources: Vec<_> = spec.mounts.iter().map(|mount| mount.source.to_str().unwrap()).collect();
        assert_eq!(sources, ["/bundle/proc", "/bundle/a", "/b", ""]);
        assert_eq!(spec.mounts[0].object["source"], "/bundle/proc");
        assert_eq!(spec.mounts[2].object["other"]["kept"], 1);
        assert!(!spec.mounts[3].object.contains_key("source"));
        assert!(spec.mounts[1].is_gofer_mount() && !spec.mounts[0].is_gofer_mount());
    }

    #[test]
    fn what_a_gofer_needs_is_read() {
        let spec = read(
            r#"{"root":{"path":"/r","readonly":true},"process":{"cwd":"/w","env":["A=B"]},"annotations":{"k":"v"},
                "linux":{"rootfsPropagation":"rslave","devices":[{"path":"/dev/null"}]},
                "hooks":{"createContainer":[{"path":"/h","args":["h"],"env":[],"timeout":3}],"prestart":null},
                "mounts":[{"destination":"/a","uidMappings":[{}],"gidMappings":[{}]},
                    {"destination":"/b","uidMappings":[{}]}]}"#,
        )
        .unwrap();
        assert!(spec.root.readonly);
        assert_eq!((spec.cwd.to_str(), spec.rootfs_propagation.as_str()), (Some("/w"), "rslave"));
        assert_eq!((&spec.env[..], &spec.annotations["k"]), (&["A=B".to_owned()][..], &"v".to_owned()));
        assert_eq!(spec.devices, [Path::new("/dev/null")]);
        assert_eq!(
            (spec.create_container[0].timeout, spec.create_container[0].env.as_ref().unwrap().len()),
            (Some(3), 0)
        );
        assert_eq!((spec.mounts[0].id_mapped, spec.mounts[1].id_mapped), (true, false));
    }

    #[test]
    fn a_specification_that_cannot_be_followed_is_refused() {
        let bad = [
            ("", "EOF"),
            ("{}", "root.path"),
            (r#"{"root":{}}"#, "root.path"),
            (r#"{"root":{"path":"r"}} x"#, "trailing"),
            (r#"{"root":{"path":"r"},"mounts":[{"destination":"a"}]}"#, "mounts[0]"),
            (r#"{"root":{"path":"r"},"mounts":[{"destination":"/a","options":[1]}]}"#, "options"),
            (r#"{"root":{"path":1}}"#, "path"),
        ];
        for (text, word) in bad {
            let error = read(text).expect_err(text).to_string();
            assert!(error.contains(word), "{error}");
        }
    }
}
