//! ping: how long an FStat of the root takes, over the socket and over a channel.

use std::time::{Duration, Instant};

use gofer_protocol::client::{Client, Error};
use serde_json::{Map, json};

use super::super::Failure;
use super::show;

/// Round trips before those that count.
const WARM_UP: u32 = 100;

pub(super) fn ping(
    connect: &dyn Fn(usize) -> Result<Client, Failure>,
    count: u32,
    no_channels: bool,
    json: bool,
) -> Result<(), Failure> {
    let mut results = vec![("socket", measure(&connect(0)?, count)?)];
    if !no_channels {
        let client = connect(1)?;
        if client.channels() == 0 {
            return Err(Failure::sentence("the server gave no channel; --no-channels measures the socket alone"));
        }
        results.push(("channel", measure(&client, count)?));
    }
    if json {
        let members = results.iter().map(|(name, trips)| {
            let value = json!({ "p50_ns": trips.p50.as_nanos(), "p99_ns": trips.p99.as_nanos() });
            ((*name).to_owned(), value)
        });
        return show::line(show::with(json!({ "count": count }), &Map::from_iter(members).into()));
    }
    results.iter().try_for_each(|(name, trips)| {
        let (p50, p99) = (micros(trips.p50), micros(trips.p99));
        show::line(format_args!("{name:8} p50 {p50:8.1} us   p99 {p99:8.1} us"))
    })
}

struct RoundTrips {
    p50: Duration,
    p99: Duration,
}

fn measure(client: &Client, count: u32) -> Result<RoundTrips, Failure> {
    let fail = |error: Error| Failure::new("ping", error);
    let root = client.root().control_fd;
    for _ in 0..WARM_UP {
        client.fstat(root).map_err(fail)?;
    }
    let mut trips = Vec::new();
    for _ in 0..count {
        let start = Instant::now();
        client.fstat(root).map_err(fail)?;
        trips.push(start.elapsed());
    }
    trips.sort_unstable();
    let percentile = |percent| trips.get(trips.len() * percent / 100).copied().unwrap_or_default();
    Ok(RoundTrips { p50: percentile(50), p99: percentile(99) })
}

fn micros(duration: Duration) -> f64 {
    duration.as_secs_f64() * 1e6
}
