//! The runtime opens what the gofer may not: one JSON request, one JSON reply with a descriptor (E26).

use std::io::{IoSlice, IoSliceMut};
use std::mem::MaybeUninit;
use std::os::fd::OwnedFd;

use rustix::event::PollFlags;
use rustix::io::Errno;
use rustix::net::{
    RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer, SendFlags, recvmsg, sendmsg,
};
use serde_json::{Map, Value, json};

use super::sync::wait;
use crate::process::StartError;

/// No reply is nearly as long.
const MAX_REPLY: usize = 1 << 20;

/// The client's end, for as long as mounts are set up.
#[derive(Debug)]
pub(super) struct Rpc(OwnedFd);

impl Rpc {
    pub(super) fn new(fd: OwnedFd) -> Self {
        Self(fd)
    }

    /// A descriptor of the source of `mount`, or of its detached, id-mapped tree.
    pub(super) fn open_mount(
        &self,
        mount: &Map<String, Value>,
        flags: u32,
        source: &str,
    ) -> Result<OwnedFd, StartError> {
        let fail = |cause: &dyn std::fmt::Display| {
            StartError::new(format_args!("have the runtime open the mount source {source}"), cause)
        };
        let request = json!({"method": "goferToHostRPC.OpenMount", "arg": {"Mount": mount, "Flags": flags}});
        self.send(request.to_string().as_bytes()).map_err(|cause| fail(&cause))?;
        let (reply, fd) = self.receive().map_err(|cause| fail(&cause))?;
        if reply.get("success") != Some(&Value::Bool(true)) {
            return Err(fail(&reply.get("err").and_then(Value::as_str).unwrap_or("no reason given")));
        }
        fd.ok_or_else(|| fail(&"the reply has no descriptor"))
    }

    fn send(&self, mut rest: &[u8]) -> Result<(), Errno> {
        while !rest.is_empty() {
            let mut none = SendAncillaryBuffer::default();
            match sendmsg(&self.0, &[IoSlice::new(rest)], &mut none, SendFlags::NOSIGNAL) {
                Ok(sent) => rest = rest.get(sent..).unwrap_or_default(),
                Err(Errno::AGAIN) => wait(&self.0, PollFlags::OUT),
                Err(Errno::INTR) => {}
                Err(cause) => return Err(cause),
            }
        }
        Ok(())
    }

    /// One JSON value, however split, and the first descriptor that came with it. The others are closed.
    fn receive(&self) -> Result<(Value, Option<OwnedFd>), String> {
        let mut text = Vec::new();
        let mut first = None;
        loop {
            let mut bytes = [0u8; 4096];
            let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(128))];
            let mut control = RecvAncillaryBuffer::new(&mut space);
            let flags = RecvFlags::CMSG_CLOEXEC;
            let count = match recvmsg(&self.0, &mut [IoSliceMut::new(&mut bytes)], &mut control, flags) {
                Ok(message) => message.bytes,
                Err(Errno::AGAIN) => {
                    wait(&self.0, PollFlags::IN);
                    continue;
                }
                Err(Errno::INTR) => continue,
                Err(cause) => return Err(cause.to_string()),
            };
            for message in control.drain() {
                if let RecvAncillaryMessage::ScmRights(fds) = message {
                    for fd in fds {
                        first.get_or_insert(fd);
                    }
                }
            }
            if count == 0 {
                return Err("the reply ended early".to_owned());
            }
            text.extend_from_slice(bytes.get(..count).unwrap_or_default());
            match serde_json::from_slice(&text) {
                Ok(value) => return Ok((value, first)),
                Err(error) if error.is_eof() && text.len() <= MAX_REPLY => {}
                Err(error) => return Err(format!("bad reply: {error}")),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::io::{Read, Write};
    use std::os::fd::AsFd;
    use std::os::unix::net::UnixStream;

    use rustix::net::SendAncillaryMessage;

    use super::*;

    fn ask(reply: &'static [u8], fds: usize) -> Result<OwnedFd, StartError> {
        let (ours, mut theirs) = UnixStream::pair().unwrap();
        ours.set_nonblocking(true).unwrap();
        let server = std::thread::spawn(move || {
            let mut request = [0u8; 1024];
            let count = theirs.read(&mut request).unwrap();
            let request: Value = serde_json::from_slice(&request[..count]).unwrap();
            assert_eq!(request["method"], "goferToHostRPC.OpenMount");
            assert_eq!(request["arg"]["Flags"], 4096);
            let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(8))];
            let mut control = SendAncillaryBuffer::new(&mut space);
            let many = vec![theirs.as_fd(); fds];
            if fds > 0 {
                assert!(control.push(SendAncillaryMessage::ScmRights(&many)));
            }
            sendmsg(&theirs, &[IoSlice::new(&reply[..1])], &mut control, SendFlags::empty()).unwrap();
            for byte in &reply[1..] {
                theirs.write_all(&[*byte]).unwrap();
            }
        });
        let result = Rpc::new(ours.into()).open_mount(&Map::new(), 4096, "/src");
        server.join().unwrap();
        result
    }

    #[test]
    fn a_reply_in_single_bytes_with_descriptors_to_spare_is_understood() {
        ask(br#"{"success":true,"err":"","result":{}}"#, 1).unwrap();
        ask(br#"{"result":{},"more":1,"success":true}"#, 3).unwrap();
    }

    #[test]
    fn an_error_and_a_success_without_a_descriptor_name_the_source() {
        let error = ask(br#"{"success":false,"err":"gone","result":null}"#, 0).unwrap_err().to_string();
        assert!(error.contains("/src") && error.contains("gone"), "{error}");
        let error = ask(br#"{"success":true,"err":"","result":{}}"#, 0).unwrap_err().to_string();
        assert!(error.contains("no descriptor"), "{error}");
    }
}
