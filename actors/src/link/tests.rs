//! Behaviour through handles, with a fake broker and paused time.
