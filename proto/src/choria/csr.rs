//! Certificate signing requests, examined and judged.
