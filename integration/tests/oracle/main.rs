//! The differential oracle: one generated stream of requests to the original gofer and to ours, over twin trees.
//! Replies, donated descriptors and the trees themselves must be the same but for the differences in `excuse.rs`.

mod excuse;
mod side;
mod step;
mod tree;

use gofer::contract::Generation;
use gofer_integration::{Random, say};

use side::Pair;
use step::Step;

/// Requests between two fresh pairs of gofers.
const STREAM: u64 = 500;

#[test]
fn ours_answers_a_stream_of_requests_as_e26_does() {
    compare(Generation::E26, if say::long() { 1_500_000 } else { 12_000 });
}

#[test]
fn ours_answers_a_stream_of_requests_as_e24_does() {
    compare(Generation::E24, if say::long() { 300_000 } else { 4_000 });
}

#[test]
fn ours_answers_a_stream_of_requests_as_e22_does() {
    compare(Generation::E22, if say::long() { 200_000 } else { 4_000 });
}

fn compare(generation: Generation, requests: u64) {
    if !side::can_run(generation) {
        return;
    }
    let mut compared = 0;
    let first = std::env::var("GOFER_SEED").ok().and_then(|seed| seed.parse().ok()).unwrap_or(1);
    for seed in first..first + requests.div_ceil(STREAM) {
        let mut random = Random::new(seed);
        let steps: Vec<_> = (0..STREAM).map(|_| Step::random(&mut random, generation)).collect();
        if let Err(difference) = run(generation, &steps) {
            let (steps, difference) = shrunk(generation, steps, difference);
            let list: Vec<_> = steps.iter().map(|step| format!("{step:?}")).collect();
            panic!("{generation:?}, GOFER_SEED={seed}: {difference}\nafter\n{}", list.join("\n"));
        }
        compared += STREAM;
    }
    say::measured(format_args!("{compared} requests compared with {generation:?}"));
}

/// Runs a stream over a fresh pair; the first difference, if there is one.
fn run(generation: Generation, steps: &[Step]) -> Result<(), String> {
    let mut pair = Pair::new(generation);
    for (number, step) in steps.iter().enumerate() {
        let (stock, ours) = pair.both(step);
        if stock == ours {
            continue;
        }
        // One of them may have made a descriptor: without it both go on from the same state.
        pair.forget(step);
        if excuse::reason(step, &stock, &ours).is_none() {
            return Err(format!("{number}: {step:?}\n  original: {stock:?}\n  ours:     {ours:?}"));
        }
    }
    let (stock, ours) = pair.trees();
    match stock.iter().zip(&ours).find(|(stock, ours)| stock != ours) {
        Some((stock, ours)) => Err(format!("the trees differ\n  original: {stock}\n  ours:     {ours}")),
        None if stock.len() != ours.len() => Err(format!("the trees differ:\n{stock:#?}\n{ours:#?}")),
        None => Ok(()),
    }
}

/// Takes requests away, ever fewer at a time, for as long as a difference remains.
fn shrunk(generation: Generation, mut steps: Vec<Step>, mut difference: String) -> (Vec<Step>, String) {
    let mut size = steps.len() / 2;
    while size > 0 {
        let mut start = 0;
        while start < steps.len() {
            let mut fewer = steps.clone();
            fewer.drain(start..(start + size).min(steps.len()));
            match run(generation, &fewer) {
                Err(other) => (steps, difference) = (fewer, other),
                Ok(()) => start += size,
            }
        }
        size /= 2;
    }
    (steps, difference)
}
