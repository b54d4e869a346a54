//! What every handler holds.

use std::sync::Arc;

use super::guard::Access;
use super::live::Board;
use super::state::WebState;

/// One listener's state.
#[derive(Debug)]
pub(super) struct Site {
    /// What the pages are made of.
    pub state: WebState,
    /// Who may look and change.
    pub access: Access,
    /// What the live pages show.
    pub board: Arc<Board>,
}

impl Site {
    /// Of a listener on this port.
    pub fn new(state: WebState, port: u16) -> Self {
        let access = Access::new(state.access.clone(), port);
        let board = Arc::new(Board::new(state.clone()));
        Self { state, access, board }
    }
}
