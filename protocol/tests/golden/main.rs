//! The recorded messages of the reference: we write the same bytes, and read the same meaning from them.

#[path = "../every/mod.rs"]
mod every;
mod families;
mod fields;
mod frames;

use every::Direction;
use fields::Vector;
use gofer_protocol::message::{FStatRequest, OpenAtRequest};
use gofer_protocol::{Errno, Malformed, Mid};

#[test]
fn every_recorded_message_has_the_same_bytes_and_the_same_meaning() {
    let (mut good, mut bad, mut tolerated) = (0, 0, 0);
    for vector in vectors() {
        match vector.direction.as_str() {
            "request" => {
                families::check_request(&vector);
                check_again(Direction::Request, &vector);
            }
            "response" => {
                families::check_reply(&vector);
                check_again(Direction::Reply, &vector);
            }
            "request-frame-socket" | "response-frame-socket" => frames::check_socket(&vector),
            "request-window" | "response-window" => frames::check_window(&vector),
            "request-malformed" => {
                check_refused(&vector);
                bad += 1;
                continue;
            }
            "request-trailing" | "request-padding" => {
                check_tolerated(&vector);
                tolerated += 1;
                continue;
            }
            other => panic!("{}: direction {other}", vector.name),
        }
        good += 1;
    }
    assert_eq!((good, bad, tolerated), (95, 9, 2));
}

/// Asserts that the message which the number stands for has no byte that decoding loses.
fn check_again(direction: Direction, v: &Vector) {
    assert_eq!(every::encode_again(direction, v.mid, &v.bytes), Some(Ok(v.bytes.clone())), "{}", v.name);
}

/// Asserts that a payload that is too short for its layout is refused, with the errno that the reference answers.
fn check_refused(v: &Vector) {
    assert!(v.name.starts_with("bad_"));
    let why = v.fields.value("why");
    let refused = every::inspect(Direction::Request, v.mid, &v.bytes).unwrap();
    assert_eq!(refused, Err(Malformed), "{}: {why}", v.name);
    assert_eq!(Errno::from(Malformed).name(), v.fields.value("expect").as_str(), "{}", v.name);
    v.fields.assert_all_used(&v.name);
}

/// Asserts that bytes beyond a layout, and in its padding, are ignored.
fn check_tolerated(v: &Vector) {
    assert!(v.name.starts_with("tolerated_"));
    let f = &v.fields;
    match v.mid {
        Mid::FSTAT => {
            assert!(v.bytes.ends_with(&f.bytes("trailing")));
            v.means(&FStatRequest { fd: f.fd("fd") });
        }
        Mid::OPEN_AT => v.means(&OpenAtRequest { fd: f.fd("fd"), flags: f.int("flags") }),
        other => panic!("{}: {other:?}", v.name),
    }
}

fn vectors() -> Vec<Vector> {
    let recorded: serde_json::Value = serde_json::from_str(include_str!("../vectors/lisafs.json")).unwrap();
    recorded.as_array().unwrap().iter().map(Vector::new).collect()
}
