//! What a compromised client can try, one family a file, and what must hold: every row of the threat list by name.

mod channels;
mod credentials;
mod devices;
mod exhaustion;
mod fdids;
mod lengths;
mod names;
mod paths;
mod policy;
mod read_only;
mod shared_memory;
mod smuggling;
mod stalling;
mod swaps;
mod waiting;
