//! `linerate archive`: keeping an archive small, copying it, and tags.

use std::path::PathBuf;

use clap::{ArgGroup, Args, Subcommand};
use linerate_archive::{ArchiveError, Filter, Store};
use linerate_model::ArchiveOptions;
use linerate_report::{PruneReport, archive_info, plural};
use linerate_runner::{Retention, archive_at};
use linerate_units::{Bytes, above_zero};

use super::archived::row;
use crate::command_error::CommandError;
use crate::exit::Exit;
use crate::{archive, stdout, terminal};

#[derive(Debug, Args)]
pub(crate) struct ArchiveCommandArgs {
    #[command(subcommand)]
    command: ArchiveCommand,
    #[command(flatten)]
    archive: ArchiveOptions,
}

#[derive(Debug, Subcommand)]
enum ArchiveCommand {
    /// Show where the archive is, the number of its runs, and its size
    Info,
    /// Remove the oldest runs; those with a tag stay, and a plan goes with its runs
    Prune(PruneArgs),
    /// Give the space of removed runs back to the disk
    Vacuum,
    /// Copy the archive into a new SQLite file, also while tests run
    Backup {
        /// The new file
        #[arg(value_name = "FILE")]
        file: PathBuf,
    },
    /// Copy all runs into another archive, which may have runs already
    Copy {
        /// The other archive: a file or a postgres:// URL
        #[arg(value_name = "FILE|URL", value_parser = ArchiveOptions::parse_location)]
        to: String,
    },
    /// Add tags to a run
    Tag(TagArgs),
    /// Remove tags from a run
    Untag(TagArgs),
    /// Remove runs
    Delete {
        /// Names of the runs, or unique prefixes
        #[arg(value_name = "RUN", required = true)]
        runs: Vec<String>,
    },
}

#[derive(Debug, Args)]
#[command(group = ArgGroup::new("limits").required(true).multiple(true))]
struct PruneArgs {
    /// Keep the runs of this number of days
    #[arg(long, value_name = "DAYS", group = "limits", value_parser = clap::value_parser!(u32).range(..=36_500))]
    keep_days: Option<u32>,
    /// Keep this number of runs, the newest
    #[arg(long, value_name = "RUNS", group = "limits")]
    keep_runs: Option<u32>,
    /// Keep the newest runs whose logs have this size together, such as 10G
    #[arg(long, value_name = "BYTES", group = "limits", value_parser = above_zero::<Bytes>)]
    keep_bytes: Option<Bytes>,
    /// Only list what would be removed
    #[arg(long)]
    dry_run: bool,
}

#[derive(Debug, Args)]
struct TagArgs {
    /// Name of the run, or a unique prefix
    run: String,
    /// The tags
    #[arg(value_name = "TAG", required = true)]
    tags: Vec<String>,
}

/// Executes a command on the archive.
pub(crate) fn run(args: &ArchiveCommandArgs) -> Result<Exit, CommandError> {
    let mut kept = archive::open(&args.archive)?;
    let text = match &args.command {
        ArchiveCommand::Info => {
            archive_info(kept.shown(), kept.count(&Filter::default())?, Bytes::new(kept.size_bytes()?))
        }
        ArchiveCommand::Prune(prune) => {
            let keep = Retention { days: prune.keep_days, runs: prune.keep_runs, bytes: prune.keep_bytes };
            let excess = kept.excess(&keep.limits())?;
            let rows = excess.iter().map(|run| row(run, &kept)).collect::<Result<Vec<_>, _>>()?;
            let removed = (!prune.dry_run).then(|| kept.prune(&keep.limits())).transpose()?;
            PruneReport { rows: &rows, removed, left: kept.count(&Filter::default())? }
                .text(&terminal::stdout_view())
        }
        ArchiveCommand::Vacuum => {
            let before = kept.size_bytes()?;
            kept.vacuum()?;
            let after = Bytes::new(kept.size_bytes()?);
            format!("{} before, {after} now\n", Bytes::new(before))
        }
        ArchiveCommand::Backup { file } => {
            kept.backup(file)?;
            format!("copied {} to {}\n", plural(kept.count(&Filter::default())?, "run"), file.display())
        }
        ArchiveCommand::Copy { to } => {
            let new = kept.copy_to(&mut archive_at(Some(to))?)?;
            format!("copied {}\n", plural(new, "new run"))
        }
        ArchiveCommand::Tag(args) => {
            args.tags.iter().try_for_each(|tag| kept.tag(&args.run, tag))?;
            String::new()
        }
        ArchiveCommand::Untag(args) => {
            args.tags.iter().try_for_each(|tag| kept.untag(&args.run, tag).map(drop))?;
            String::new()
        }
        ArchiveCommand::Delete { runs } => {
            // None is removed if one of them does not exist.
            let ids = runs.iter().map(|run| kept.find(run)).collect::<Result<Vec<_>, ArchiveError>>()?;
            ids.iter().try_for_each(|id| kept.delete(id))?;
            String::new()
        }
    };
    Ok(stdout::print(text.as_bytes()))
}
