//! The shortest way through every layer.

use gofer_integration::{Ask, Served};
use gofer_protocol::codec::decode;
use gofer_protocol::record::Statx;
use gofer_protocol::{Errno, Malformed, Mid};

#[test]
fn a_file_is_created_found_opened_and_removed() {
    let served = Served::with(&[], |dir| std::fs::write(dir.join("there"), "hello").expect("a file"));
    let file = served.client.walk_to(served.root, "there");
    assert_eq!(served.client.fstat(file).expect("stat").size, 5);
    let (open, fds) = served.client.open(file, 0).expect("open");
    assert_eq!(fds.len(), 1);
    let (child, _, fds) = served.client.create(served.root, "new").expect("create");
    assert_eq!(fds.len(), 1);
    assert!(served.path().join("new").exists());
    served.client.close(&[file, open, child.control_fd]);
    assert_eq!(served.client.fstat(file), Err(Errno::EBADF));
}

#[test]
fn a_channel_answers_like_the_socket() {
    let served = Served::with(&[], |dir| std::fs::write(dir.join("there"), "hello").expect("a file"));
    let file = served.client.walk_to(served.root, "there");
    let channel = served.client.on_channel();
    let reply = channel.request(Mid::FSTAT.0, &[&file.0.to_le_bytes()]).expect("a reply");
    assert_eq!(reply.mid, Mid::FSTAT.0);
    let mut payload = Vec::new();
    channel.append_payload_to(0, reply.payload_len, &mut payload).expect("a payload");
    assert_eq!(decode::<Statx>(&payload), served.client.fstat(file).map_err(|_| Malformed));
}
