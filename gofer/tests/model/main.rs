//! Random operations of two clients on one server agree with a simple model, answer by answer, and the host's own view
//! of the tree agrees with the model after each.

mod client;
mod operation;
mod play;
mod tree;

use proptest::prelude::*;
use proptest::test_runner::Config;

use operation::{Operation, operation};
use play::Play;

/// Few enough for every run of the suite, enough to meet each pair of operations hundreds of times.
const CASES: u32 = 400;

/// Operations of one case.
const LENGTH: usize = 60;

proptest! {
    #![proptest_config(Config { cases: CASES, failure_persistence: None, ..Config::default() })]

    #[test]
    fn the_server_does_what_the_model_does(operations in prop::collection::vec(operation(), 1..LENGTH)) {
        let mut play = Play::new();
        for operation in &operations {
            play.perform(operation);
        }
        play.end();
    }
}

/// Operations that shrinking found to break a server once, or that took thought to get right.
#[test]
fn known_sequences_agree() {
    use Operation::{Create, Exchange, Link, Mkdir, Open, Rename, SetXattr, Unlink, Walk};
    let sequences = [
        // A name between two links of one file is moved nowhere.
        vec![
            Create { client: 0, dir: 0, name: 0, mode: 0o600, access: 2 },
            Link { client: 0, dir: 0, target: 1, name: 1 },
            Rename { client: 0, old: (0, 0), new: (0, 1) },
            Unlink { client: 0, dir: 0, name: 0, directory: false },
            SetXattr { client: 0, file: 1, name: 0, value: 3 },
            SetXattr { client: 0, file: 2, name: 0, value: 4 },
        ],
        // Nor are two links swapped.
        vec![
            Create { client: 0, dir: 0, name: 0, mode: 0o600, access: 2 },
            Link { client: 0, dir: 0, target: 1, name: 1 },
            Exchange { client: 0, old: (0, 0), new: (0, 1) },
            Unlink { client: 0, dir: 0, name: 0, directory: false },
            SetXattr { client: 0, file: 1, name: 0, value: 3 },
            SetXattr { client: 0, file: 2, name: 0, value: 4 },
        ],
        // What one client removes is removed for the other, and what comes after it is not.
        vec![
            Mkdir { client: 0, dir: 0, name: 0, mode: 0o700 },
            Walk { client: 1, dir: 0, path: vec![0] },
            Unlink { client: 0, dir: 0, name: 0, directory: true },
            Mkdir { client: 0, dir: 0, name: 0, mode: 0o700 },
            Mkdir { client: 1, dir: 1, name: 1, mode: 0o700 },
            Walk { client: 1, dir: 0, path: vec![0] },
            Open { client: 1, file: 1, flags: 0 },
        ],
    ];
    for sequence in sequences {
        let mut play = Play::new();
        for operation in &sequence {
            play.perform(operation);
        }
        play.end();
    }
}
