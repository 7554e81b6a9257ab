//! Messages with what their transport puts in front of them.

use gofer_protocol::codec::decode;
use gofer_protocol::message::{ErrorReply, FStatRequest, OpenAtReply};
use gofer_protocol::transport::SocketHeader;
use gofer_protocol::{Mid, Wire};

use crate::fields::Vector;

/// Asserts that a message over the socket starts with its length and number.
pub(crate) fn check_socket(v: &Vector) {
    let f = &v.fields;
    let payload = payload(v);
    let header = SocketHeader::new(f.int("payload_len"), Mid(f.int("message")));
    let mut frame = Vec::new();
    header.put(&mut frame);
    assert_eq!(decode::<SocketHeader>(&v.bytes), Ok(header), "{}", v.name);
    assert_eq!(usize::try_from(header.payload_len), Ok(payload.len()), "{}", v.name);
    frame.extend(payload);
    assert_eq!(frame, v.bytes, "{}", v.name);
    f.assert_all_used(&v.name);
}

/// Asserts the layout of a packet window: state, length, eight reserved bytes, then the datagram.
pub(crate) fn check_window(v: &Vector) {
    let f = &v.fields;
    let mut datagram = Vec::new();
    if f.has("datagram") {
        datagram.extend(f.bytes("datagram"));
    } else {
        Mid(f.int("message")).put(&mut datagram);
        f.int::<u8>("num_fds").put(&mut datagram);
        0u8.put(&mut datagram);
        datagram.extend(payload(v));
    }
    let mut window = Vec::new();
    f.int::<u32>("conn_state").put(&mut window);
    f.int::<u32>("data_len").put(&mut window);
    0u64.put(&mut window);
    assert_eq!(f.int::<usize>("data_len"), datagram.len(), "{}", v.name);
    window.extend(datagram);
    assert_eq!(window, v.bytes, "{}", v.name);
    f.assert_all_used(&v.name);
}

/// The bytes of the message inside a frame.
fn payload(v: &Vector) -> Vec<u8> {
    let mut payload = Vec::new();
    if !v.fields.has("payload") {
        return payload;
    }
    let f = v.fields.object("payload");
    match (v.mid, v.direction.starts_with("request")) {
        (Mid::ERROR, false) => ErrorReply { errno: f.int("errno") }.put(&mut payload),
        (Mid::FSTAT, true) => FStatRequest { fd: f.fd("fd") }.put(&mut payload),
        (Mid::OPEN_AT, false) => OpenAtReply { open_fd: f.fd("open_fd") }.put(&mut payload),
        (other, _) => panic!("{}: a frame around {other:?}", v.name),
    }
    f.assert_all_used(&v.name);
    payload
}
