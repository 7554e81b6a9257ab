//! What `runsc` does for an E26 gofer that sets up its mounts: it opens what the gofer may not.
//!
//! One JSON object each way, one after the other, until the gofer closes its end, which it does before it serves.

use std::io::{BufReader, IoSlice};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::path::Path;

use rustix::fs::{CWD, Mode, OFlags, ResolveFlags, openat, openat2};
use rustix::io::{Errno, retry_on_intr};
use rustix::mount::MountFlags;
use rustix::net::{SendAncillaryBuffer, SendAncillaryMessage, SendFlags, sendmsg};
use serde_json::{Value, json};

use super::{IdMap, UserNamespace, idmap};

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
        self.maps().is_ok_and(|maps| maps.is_some())
    }

    /// The mappings, where there are some of both kinds.
    fn maps(&self) -> Result<Option<UserNamespace>, String> {
        let of = |key: &str| {
            let list = self.mount[key].as_array().map(Vec::as_slice).unwrap_or_default();
            let maps = list.iter().map(|entry| {
                let number = |key: &str| entry[key].as_u64().and_then(|number| u32::try_from(number).ok());
                let map = number("containerID").zip(number("hostID")).zip(number("size"));
                let map = map.map(|((inner, outer), count)| IdMap { inner, outer, count });
                map.ok_or_else(|| format!("this is no mapping of ids: {entry}"))
            });
            maps.collect::<Result<Vec<_>, _>>()
        };
        let (uids, gids) = (of("uidMappings")?, of("gidMappings")?);
        Ok((!uids.is_empty() && !gids.is_empty()).then_some(UserNamespace::Maps(uids, gids)))
    }

    fn has_option(&self, word: &str) -> bool {
        self.mount["options"].as_array().is_some_and(|options| options.iter().any(|option| option == word))
    }
}

/// The files of a gofer's mount name space, opened with the caller's own rights.
#[derive(Debug)]
pub struct Sources {
    root: OwnedFd,
    mounts: OwnedFd,
}

impl Sources {
    /// Those of `pid`, which must not have pivoted yet.
    pub(super) fn of(pid: u32) -> Result<Self, Errno> {
        let open =
            |name: &str, flags| openat(CWD, format!("/proc/{pid}/{name}"), flags | OFlags::CLOEXEC, Mode::empty());
        Ok(Self { root: open("root", OFlags::PATH | OFlags::DIRECTORY)?, mounts: open("ns/mnt", OFlags::RDONLY)? })
    }

    /// Opens what a request asks for: the source, or a detached tree of it with other ids.
    ///
    /// # Errors
    /// A sentence.
    pub fn open(&self, request: &OpenMount) -> Result<OwnedFd, String> {
        let source = request.source();
        let path = std::path::absolute(source).map_err(|error| format!("find {source:?}: {error}"))?;
        match request.maps()? {
            Some(maps) => self.mapped(request, &path, &maps),
            None => {
                // Through the gofer's root, and so on the gofer's mounts: a bind mount takes no source of another name
                // space.
                let flags = OFlags::PATH | OFlags::CLOEXEC;
                let open = || openat2(&self.root, &path, flags, Mode::empty(), ResolveFlags::IN_ROOT);
                retry_on_intr(open).map_err(|errno| format!("open {source}: {errno}"))
            }
        }
    }

    fn mapped(&self, request: &OpenMount, source: &Path, maps: &UserNamespace) -> Result<OwnedFd, String> {
        let users = idmap::user_namespace(maps).map_err(|error| error.to_string())?;
        let recursive = request.flags & MountFlags::REC.bits() != 0;
        let depth = (recursive, request.has_option("ridmap"));
        idmap::mapped_tree(self.mounts.as_fd(), users.as_fd(), source, depth)
            .map_err(|errno| format!("map the ids of {}: {errno}", source.display()))
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
