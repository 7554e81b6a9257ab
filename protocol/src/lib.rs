//! LISAFS: messages, records, socket and shared-memory transports, client and server side.
