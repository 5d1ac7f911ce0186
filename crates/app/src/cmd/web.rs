//! `linerate serve --web`.

use std::net::{SocketAddr, TcpListener};
use std::path::PathBuf;

use clap::Args;
use linerate_control::{Server, Token};
use linerate_model::ServerTlsOptions;
use linerate_runner::CertificateSource;
use linerate_runner::lab::may_run_plans;
use linerate_sock::inherited::InheritedSockets;
use linerate_web::{
    Access, AllowedTarget, PlanSetup, TokenFile, WebAssets, WebConfig, WebError, WebHandle, WebServer,
    WebToken,
};

use super::lab::OwnPrograms;
use super::serve::ServeArgs;
use crate::agent_token::read_from;
use crate::command_error::CommandError;
use crate::{front_end, print};

// The front end; empty if it was not built.
const SCRIPT: &str = include_str!(concat!(env!("OUT_DIR"), "/web.js"));
const WORKER: &str = include_str!(concat!(env!("OUT_DIR"), "/worker.js"));
const STYLE: &str = include_str!(concat!(env!("OUT_DIR"), "/web.css"));

#[derive(Debug, Args)]
pub(super) struct WebArgs {
    /// Also serve web pages that start tests from this host and show results [default address: 127.0.0.1:8080]
    #[arg(long, value_name = "ADDRESS:PORT", num_args = 0..=1, default_missing_value = "127.0.0.1:8080", value_parser = WebConfig::parse_address)]
    web: Option<SocketAddr>,
    /// Visitors with the token in this file may do everything
    #[arg(long, value_name = "FILE", requires = "web", conflicts_with = "insecure")]
    web_token_file: Option<PathBuf>,
    /// Visitors may use the tokens in this file, which `linerate token` makes [default: linerate/tokens in the user's
    /// data directory, if it is there]
    #[arg(long, value_name = "FILE", requires = "web", conflicts_with = "insecure")]
    tokens: Option<PathBuf>,
    #[command(flatten)]
    pub(super) tls: ServerTlsOptions,
    /// Tests from the pages may only go to this host or network; may be given more than once [default: everywhere]
    #[arg(long, value_name = "HOST|NETWORK", requires = "web")]
    web_target: Vec<AllowedTarget>,
    /// Plans from the pages may measure between hosts whose agents have the token in this file
    #[arg(long, value_name = "FILE", requires = "web")]
    web_agent_token_file: Option<PathBuf>,
    /// Another name under which browsers reach the pages; may be given more than once
    #[arg(long, value_name = "NAME", requires = "web", value_parser = WebConfig::parse_name)]
    web_name: Vec<String>,
    /// Let everybody see all results of the archive and measure from their browser. Other tests, cancelling and
    /// deleting need a token
    #[arg(long, requires = "web")]
    pub(super) public: bool,
    /// Allow pages that others reach without TLS or a token; without --public, everybody may do everything there
    #[arg(long, requires = "web")]
    insecure: bool,
}

impl WebArgs {
    /// Names for the certificate of the pages; absent if no pages are wanted.
    pub(super) fn names(&self) -> Option<Vec<String>> {
        self.web.map(|address| WebConfig::certificate_names(address, &self.web_name))
    }

    /// Checks the options, and reads the files that they name.
    pub(super) fn check(&self, args: &ServeArgs) -> Result<(), CommandError> {
        self.config(args)?.map_or(Ok(()), |config| WebServer::check(&config).map_err(refused))
    }

    /// The socket of the pages, if the service manager has opened it.
    pub(super) fn listener(&self, inherited: &mut InheritedSockets) -> Option<TcpListener> {
        inherited.take_plain_listener(self.web?)
    }

    /// Starts the pages of a server if they are wanted, and prints where they are.
    pub(super) fn start(
        &self,
        server: &Server,
        args: &ServeArgs,
        listener: Option<TcpListener>,
    ) -> Result<Option<WebHandle>, CommandError> {
        let Some(config) = self.config(args)? else { return Ok(None) };
        let web = WebServer::bind_with(config, listener).map_err(refused)?;
        print::note(format!("pages at {}", web.url()));
        web.notes().into_iter().for_each(print::note);
        web.start(server.own_runs(), server.handover()).map(Some).map_err(refused)
    }

    /// The configuration of the pages if they are wanted, with what is in the files that the options name.
    fn config(&self, args: &ServeArgs) -> Result<Option<WebConfig>, CommandError> {
        let Some(address) = self.web else { return Ok(None) };
        let web_token = |path: &PathBuf| read_from("--web-token-file", path, WebToken::new);
        let agent_token = |path: &PathBuf| read_from("--web-agent-token-file", path, Token::new);
        Ok(Some(WebConfig {
            address,
            access: Access {
                token: self.web_token_file.as_ref().map(web_token).transpose()?,
                tokens: TokenFile::of_service(self.tokens.as_deref()).map_err(|e| refused(e.into()))?,
                public: self.public,
                insecure: self.insecure,
            },
            tls: CertificateSource::of_pages(&self.tls),
            names: self.web_name.clone(),
            share_key: None,
            archive: args.archive.archive.clone(),
            targets: self.web_target.clone(),
            plans: PlanSetup {
                agent_token: self.web_agent_token_file.as_ref().map(agent_token).transpose()?,
                lab_programs: may_run_plans().then_some(&OwnPrograms as _),
                run_dir: args.run.run_dir.clone(),
            },
            notify: |line| print::note(line),
            assets: WebAssets { script: SCRIPT, worker: WORKER, style: STYLE, report: front_end::REPORT },
        }))
    }
}

fn refused(error: WebError) -> CommandError {
    CommandError::of(error.needs_correction(), error)
}
