//! The helper contract: what a helper reads on stdin and writes on stdout.
