//! One request and its answer, whatever the transport: the socket, or a channel.

use std::os::fd::OwnedFd;

use gofer_protocol::codec::decode;
use gofer_protocol::message::ErrorReply;
use gofer_protocol::transport::channel::ClientChannel;
use gofer_protocol::{Errno, Mid, Wire};

use crate::Raw;

/// Something that carries requests to the server and its answers back.
pub trait Exchange {
    /// Sends a payload as it is and receives the answer; none if there will be no more.
    fn try_exchange(&self, mid: u16, payload: &[u8]) -> Option<Answer>;

    /// As [`Exchange::try_exchange`], where there must be an answer: to this request, and well-formed if it is an error.
    ///
    /// # Errors
    /// The errno that the server sent.
    ///
    /// # Panics
    /// If there is none, or another.
    fn exchange(&self, mid: u16, payload: &[u8]) -> Result<Answer, Errno> {
        let answer = self.try_exchange(mid, payload).expect("an answer, not the end of the connection");
        if answer.mid == Mid::ERROR {
            assert!(answer.fds.is_empty(), "an error donates nothing");
            assert_eq!(answer.payload.len(), 4, "an error is an errno and nothing else");
            let ErrorReply { errno } = answer.decode();
            return Err(Errno::from_wire(errno));
        }
        assert_eq!(answer.mid, Mid(mid), "the answer to another request");
        Ok(answer)
    }
}

impl Exchange for Raw {
    fn try_exchange(&self, mid: u16, payload: &[u8]) -> Option<Answer> {
        self.send(mid, payload);
        self.receive()
    }
}

impl Exchange for ClientChannel {
    fn try_exchange(&self, mid: u16, payload: &[u8]) -> Option<Answer> {
        let reply = self.request(mid, &[payload]).ok()?;
        let mut payload = Vec::new();
        self.append_payload_to(0, reply.payload_len, &mut payload).expect("a payload within the window");
        let mut fds: Vec<Option<OwnedFd>> = (0..reply.num_fds).map(|_| None).collect();
        self.receive_fds(&reply, &mut fds);
        let fds = fds.into_iter().map(|fd| fd.expect("a descriptor that was announced")).collect();
        Some(Answer { mid: Mid(reply.mid), payload, fds })
    }
}

/// A reply as it came.
#[derive(Debug)]
pub struct Answer {
    /// The request's number, or 0 for an error.
    pub mid: Mid,
    /// All bytes behind the header.
    pub payload: Vec<u8>,
    /// All descriptors that came along.
    pub fds: Vec<OwnedFd>,
}

impl Answer {
    /// The payload as a message.
    ///
    /// # Panics
    /// If it is none.
    #[must_use]
    pub fn decode<'a, T: Wire<'a>>(&'a self) -> T {
        decode(&self.payload).expect("a reply that is long enough")
    }
}
