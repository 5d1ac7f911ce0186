//! `linerate compare`: whether one configuration is better than another.

use linerate_model::{ArchiveOptions, CompareOptions, ForeignText};
use linerate_report::compare::{CompareDocument, text};
use linerate_report::html;
use linerate_runner::{CompareError, CompareRequest};

use super::import;
use crate::command_error::CommandError;
use crate::exit::Exit;
use crate::output_format::{check_file, write_out};
use crate::{archive, front_end, stdout, terminal};

/// Compare configurations
#[derive(Debug, clap::Args)]
pub(crate) struct CompareArgs {
    #[command(flatten)]
    options: CompareOptions,
    #[command(flatten)]
    archive: ArchiveOptions,
}

/// Compares, and prints the table.
pub(crate) fn run(args: &CompareArgs) -> Result<Exit, CommandError> {
    let options = &args.options;
    check_file("--report", options.report.as_deref(), ".html")?;
    let request = CompareRequest {
        runs: &options.runs,
        axis: options.axis.as_deref(),
        quantities: &options.quantities,
        archive: &|| archive::store(&args.archive),
        read_file: Some(&|path| import::logs(path).map_err(Into::into)),
    };
    let compared = request.compare().map_err(|error| match error {
        CompareError::Archive(error) => error.into(),
        error => CommandError::of(error.needs_correction(), error),
    })?;
    if let Some(path) = &options.report {
        let title = options.title.as_deref().map(ForeignText::new);
        let assets = front_end::assets().ok_or_else(|| CommandError::failed(front_end::MISSING))?;
        let mut page = Vec::new();
        html::write_comparison(title.as_ref(), &compared, &assets, &mut page)
            .map_err(CommandError::failed)?;
        write_out(Some(path), &page)?;
    }
    let all = options.all || !options.quantities.is_empty();
    Ok(match options.json {
        true => stdout::print_json(&CompareDocument::new(&compared)),
        false => stdout::print(text(terminal::stdout_page(), &compared, all).as_bytes()),
    })
}
