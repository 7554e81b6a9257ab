//! What the process may still do once it serves: capabilities, limits, root, system calls.
