//! `linerate serve` of a build without web pages: what is left of the options of `web`.

use std::convert::Infallible;

use clap::Args;
use linerate_control::Server;
use linerate_model::ServerTlsOptions;
use linerate_sock::inherited::InheritedSockets;

use super::serve::ServeArgs;
use crate::command_error::CommandError;

pub(super) use NoWebArgs as WebArgs;

#[derive(Debug, Args)]
pub(super) struct NoWebArgs {
    #[command(flatten)]
    pub(super) tls: ServerTlsOptions,
    /// Never: only pages can be public.
    #[arg(skip)]
    pub(super) public: bool,
}

impl NoWebArgs {
    /// Other names of the pages.
    pub(super) fn names(&self) -> Option<Vec<String>> {
        None
    }

    /// There are no options of pages.
    pub(super) fn check(&self, _: &ServeArgs) -> Result<(), CommandError> {
        Ok(())
    }

    /// No socket is for pages.
    pub(super) fn listener(&self, _: &mut InheritedSockets) -> Option<Infallible> {
        None
    }

    /// Starts nothing.
    pub(super) fn start(
        &self,
        _: &Server,
        _: &ServeArgs,
        _: Option<Infallible>,
    ) -> Result<Option<Infallible>, CommandError> {
        Ok(None)
    }
}
