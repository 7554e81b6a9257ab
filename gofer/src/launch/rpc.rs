//! What `runsc` does for an E26 gofer that sets up its mounts: it opens what the gofer may not.
//!
//! One JSON object each way, one after the other, until the gofer closes its end, which it does before it serves.

use std::io::{BufReader, IoSlice};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::path::PathBuf;

use rustix::fs::{CWD, Mode, OFlags, ResolveFlags, openat2};
use rustix::io::{Errno, retry_on_intr};
use rustix::net::{SendAncillaryBuffer, SendAncillaryMessage, SendFlags, sendmsg};
use serde_json::{Value, json};

/// What a gofer asks for: the source of one mount, which it may not read itself or which has id mappings.
#[derive(Clone, Debug, PartialEq)]
pub struct OpenMount {
    /// The mount as the specification has it, its source prefixed with the bundle if it was relative.
    pub mount: Value,
    /// The flags of mount(2) that its options stand for.
    pub flags: u32,
}

impl OpenMount {
    fn read(request: &Value) -> Result<Self, String> {
        if request["method"] != "goferToHostRPC.OpenMount" {
            return Err(format!("no such method: {}", request["method"]));
        }
        let argument = &request["arg"];
        let flags = argument["Flags"].as_u64().and_then(|flags| u32::try_from(flags).ok());
        let flags = flags.ok_or_else(|| format!("these are no flags: {}", argument["Flags"]))?;
        Ok(Self { mount: argument["Mount"].clone(), flags })
    }

    /// Where the mount's files are.
    #[must_use]
    pub fn source(&self) -> &str {
        self.mount["source"].as_str().unwrap_or_default()
    }

    /// Whether a detached tree with these mappings is asked for (mount_setattr(2)), not just the source.
    #[must_use]
    pub fn is_id_mapped(&self) -> bool {
        let has = |key: &str| self.mount[key].as_array().is_some_and(|list| !list.is_empty());
        has("uidMappings") && has("gidMappings")
    }
}

/// The files of a gofer's mount name space, opened with the caller's own rights.
#[derive(Debug)]
pub struct Sources {
    root: OwnedFd,
}

impl Sources {
    /// Those of `pid`, which must not have pivoted yet.
    pub(super) fn of(pid: u32) -> Result<Self, Errno> {
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let root = rustix::fs::openat(CWD, format!("/proc/{pid}/root"), flags, Mode::empty())?;
        Ok(Self { root })
    }

    /// Opens what a request asks for, if that has no id mappings.
    ///
    /// # Errors
    /// A sentence.
    pub fn open(&self, request: &OpenMount) -> Result<OwnedFd, String> {
        let source = request.source();
        if request.is_id_mapped() {
            return Err(format!("the launcher maps no ids of the mount source {source}"));
        }
        let path = std::path::absolute(PathBuf::from(source)).map_err(|error| format!("find {source:?}: {error}"))?;
        let flags = OFlags::PATH | OFlags::CLOEXEC;
        // Through the gofer's root, and so on the gofer's mounts: a bind mount takes no source of another name space.
        let opened = retry_on_intr(|| openat2(&self.root, &path, flags, Mode::empty(), ResolveFlags::IN_ROOT));
        opened.map_err(|errno| format!("open {source}: {errno}"))
    }
}

/// Answers requests by `open` on a thread, until the gofer closes its end.
pub(super) fn answer(
    socket: UnixStream,
    mut open: impl FnMut(&OpenMount) -> Result<OwnedFd, String> + Send + 'static,
) -> std::io::Result<()> {
    let answering = move || {
        for request in serde_json::Deserializer::from_reader(BufReader::new(&socket)).into_iter::<Value>() {
            // What is no JSON has no answer either, and the gofer says so.
            let Ok(request) = request else { return };
            let opened = OpenMount::read(&request).and_then(|request| open(&request));
            if reply(&socket, opened).is_err() {
                return;
            }
        }
    };
    std::thread::Builder::new().name("gofer rpc".into()).spawn(answering).map(drop)
}

fn reply(socket: &UnixStream, opened: Result<OwnedFd, String>) -> Result<(), Errno> {
    let (text, fd) = match opened {
        Ok(fd) => (json!({"success": true, "err": "", "result": {}}), Some(fd)),
        Err(error) => (json!({"success": false, "err": error, "result": null}), None),
    };
    let text = text.to_string();
    let fds: Vec<_> = fd.iter().map(AsFd::as_fd).collect();
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
    let mut control = SendAncillaryBuffer::new(&mut space);
    if !fds.is_empty() && !control.push(SendAncillaryMessage::ScmRights(&fds)) {
        return Err(Errno::NOBUFS);
    }
    let mut rest = text.as_bytes();
    while !rest.is_empty() {
        let sent = retry_on_intr(|| sendmsg(socket, &[IoSlice::new(rest)], &mut control, SendFlags::NOSIGNAL))?;
        rest = rest.get(sent..).unwrap_or_default();
        control.clear();
    }
    Ok(())
}
