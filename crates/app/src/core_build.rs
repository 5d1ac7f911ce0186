//! The small build, linerate-core: what it lacks, and what it says to those who ask for that.

/// The version, with which build it is.
pub(crate) const VERSION: &str = if cfg!(feature = "full") {
    env!("CARGO_PKG_VERSION")
} else {
    concat!(env!("CARGO_PKG_VERSION"), " (core: server, client and stand-ins)")
};

/// Commands of the full build alone, and options of its `serve`.
const FULL: &str = "token envelope check lab plan compare responsiveness run import fleet schedule agent mesh --web \
                    --web-token-file --web-agent-token-file --web-target --web-name --tokens --public --insecure \
                    --responsiveness-port";

/// The error message for a command or option that only the full build has; absent if this is the full build, or none
/// has it.
pub(crate) fn missing(word: &str) -> Option<String> {
    let is_missing = !cfg!(feature = "full") && FULL.split(' ').any(|full| full == word);
    let what = word.trim_start_matches('-');
    is_missing.then(|| format!("this build has no {what}; it is linerate-core, and the full linerate has it"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli::Cli;
    use clap::CommandFactory;

    /// With the full build, that nothing in the table is misspelt; with the small one, that the table is complete enough
    /// to explain each of its entries.
    #[test]
    fn what_the_small_build_lacks_is_in_the_full_one_and_nowhere_else() {
        let top = Cli::command();
        let serve = top.find_subcommand("serve").unwrap();
        for word in FULL.split(' ') {
            let has = match word.strip_prefix("--") {
                Some(long) => serve.get_arguments().any(|option| option.get_long() == Some(long)),
                None => top.find_subcommand(word).is_some(),
            };
            assert_eq!(has, cfg!(feature = "full"), "{word}");
            assert_eq!(missing(word).is_none(), has, "{word}");
        }
        assert_eq!(missing("serve"), None);
    }

    /// A command, or an option `--web…`, that is added to the full build alone is added here too.
    #[test]
    fn everything_that_the_small_build_lacks_is_listed() {
        let lines: Vec<&str> = include_str!("cli.rs").lines().map(str::trim).collect();
        let of_full = lines.windows(2).filter(|pair| pair[0] == "#[cfg(feature = \"full\")]");
        let names = of_full.filter_map(|pair| Some(pair[1].split_once('(')?.0.to_lowercase()));
        let commands = names.filter(|name| !name.contains(':'));
        let serve = Cli::command().find_subcommand("serve").unwrap().clone();
        let options = serve.get_arguments().filter_map(clap::Arg::get_long);
        let pages = options.filter(|long| long.starts_with("web")).map(|long| format!("--{long}"));
        let all: Vec<String> = commands.chain(pages).collect();
        assert!(all.len() > 10 && all.iter().all(|word| FULL.split(' ').any(|full| full == word)), "{all:?}");
    }
}
