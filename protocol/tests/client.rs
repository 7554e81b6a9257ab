//! The client library, against servers that lie, cut short, mix up, and die.

mod client {
    mod connection;
    mod death;
    mod files;
    mod messages;
    mod paths;
}
mod copies;
mod peer;
