//! The tokens of the file, as a running service knows them.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex};

use linerate_sock::thread::locked;

use crate::token_file::{TokenEntry, TokenFile, TokenFileError, TokenFileStamp};

/// The content of the file of tokens, and which tokens were found to be right since it was read.
#[derive(Debug, Default)]
pub(crate) struct ListedTokens {
    pub(crate) entries: Vec<TokenEntry>,
    /// Keyed digests, which are quick. Whoever reads this memory learns no token from them.
    pub(crate) verified: Mutex<BTreeSet<[u8; 32]>>,
}

impl ListedTokens {
    pub(crate) fn with_id(&self, id: &str) -> Option<&TokenEntry> {
        self.entries.iter().find(|entry| entry.id == id)
    }
}

/// The file of tokens, read again when it has changed.
#[derive(Debug)]
pub(crate) struct WatchedTokens {
    file: TokenFile,
    state: Mutex<(Option<TokenFileStamp>, Option<Arc<ListedTokens>>)>,
}

impl WatchedTokens {
    pub(crate) fn open(file: TokenFile) -> Result<Self, TokenFileError> {
        let stamp = file.stamp();
        let entries = file.list()?;
        let listed = Arc::new(ListedTokens { entries, ..ListedTokens::default() });
        Ok(Self { file, state: Mutex::new((stamp, Some(listed))) })
    }

    /// The tokens; absent if the file cannot be used. A removed token has to be refused at once, so this looks at the
    /// file for each request: the look costs about a microsecond, and the file is local and small.
    pub(crate) fn listed(&self) -> Option<Arc<ListedTokens>> {
        let mut state = locked(&self.state);
        let stamp = self.file.stamp();
        if state.0 != stamp {
            let listed = self.file.list().map_err(|error| {
                tracing::error!(%error, "the tokens cannot be read, so none is accepted until this is corrected");
            });
            let made = |entries| Arc::new(ListedTokens { entries, ..ListedTokens::default() });
            *state = (stamp, listed.ok().map(made));
        }
        state.1.clone()
    }
}
