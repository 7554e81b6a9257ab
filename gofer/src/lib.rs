//! The trusted file server of a sandbox: serves a directory over LISAFS.
