//! What a plan refers to: files next to it, and topologies.

use std::error::Error;
use std::fmt;
use std::io;
use std::path::{Path, PathBuf};

use linerate_emu::topology::{self, Override, TopologyError};
use linerate_plan::{Plan, PlanError, Source, Surroundings, SurroundingsError};

/// Files next to a plan, and bundled topologies.
#[derive(Debug, Clone, Copy, Default)]
pub struct PlanFiles;

/// The surroundings of a plan from somebody who must not read files of this host: bundled topologies, and nothing else.
#[derive(Debug, Clone, Copy, Default)]
pub struct NoPlanFiles;

/// A plan that refers to no files of this host, with these settings.
///
/// # Errors
/// All mistakes in the text and the settings.
pub fn read_without_files(text: &str, set: &[String]) -> Result<Plan, PlanError> {
    linerate_plan::read(Source { name: "plan".to_owned(), text: text.to_owned() }, set, &NoPlanFiles)
}

/// The bundled topology with this name, or the file of this name next to a plan.
pub(crate) fn topology_of_plan(name: &str, relative_to: &str) -> Result<Source, SurroundingsError> {
    match bundled_topology(name) {
        Some(known) => Ok(known),
        None => read_next_to(name, relative_to).map_err(|(file, source)| no_topology(name, file, source)),
    }
}

fn bundled_topology(name: &str) -> Option<Source> {
    let known = topology::bundled().iter().find(|known| known.name == name)?;
    Some(Source { name: name.to_owned(), text: known.text.to_owned() })
}

fn no_topology(name: &str, file: String, source: io::Error) -> SurroundingsError {
    let bundled = topology::bundled().iter().map(|known| known.name).collect();
    SurroundingsError::Topology { topology: name.to_owned(), bundled, file, source }
}

/// Path of `name` in the folder of the file `relative_to`.
pub(super) fn resolve(name: &str, relative_to: &str) -> PathBuf {
    Path::new(relative_to).parent().map_or_else(|| PathBuf::from(name), |folder| folder.join(name))
}

/// The file `name` in the folder of `relative_to`; its path with the error if it cannot be read.
fn read_next_to(name: &str, relative_to: &str) -> Result<Source, (String, io::Error)> {
    let path = resolve(name, relative_to);
    let shown = path.display().to_string();
    match std::fs::read_to_string(&path) {
        Ok(text) => Ok(Source { name: shown, text }),
        Err(error) => Err((shown, error)),
    }
}

/// Two hosts of a topology, and the links on the path between them: the name of each, and the number of its members.
pub type HostPath = ((String, String), Vec<(String, u32)>);

/// The paths between all hosts of a bundled topology, or of the topology file of this name next to `relative_to`.
///
/// # Errors
/// There is no such topology, or it has mistakes.
pub fn topology_paths(name: &str, relative_to: &str) -> Result<Vec<HostPath>, SurroundingsError> {
    let Source { name: file, text } = topology_of_plan(name, relative_to)?;
    let network = topology::read(&text, &file, &[])
        .map_err(|error| SurroundingsError::Network(Box::new(InOneLine(error))))?;
    let mut paths = Vec::new();
    for (at, from) in network.hosts.iter().enumerate() {
        for to in &network.hosts[at + 1..] {
            let Some(links) = network.path(&from.name, &to.name) else { continue };
            let links = links.iter().map(|link| (link.name.clone(), link.members)).collect();
            paths.push(((from.name.clone(), to.name.clone()), links));
        }
    }
    Ok(paths)
}

/// The mistakes of a topology in one line, with settings named as those of a plan.
#[derive(Debug)]
struct InOneLine(TopologyError);

impl fmt::Display for InOneLine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0.to_string().replace('\n', "; ").replace("--set ", "setting "))
    }
}

impl Error for InOneLine {}

impl Surroundings for PlanFiles {
    fn include(&self, name: &str, relative_to: &str) -> Result<Source, SurroundingsError> {
        read_next_to(name, relative_to).map_err(|(file, source)| SurroundingsError::File { file, source })
    }

    fn topology(&self, name: &str, relative_to: &str) -> Result<Source, SurroundingsError> {
        topology_of_plan(name, relative_to)
    }

    fn hosts(
        &self,
        name: &str,
        set: &[(&str, &str)],
        relative_to: &str,
    ) -> Result<Vec<String>, SurroundingsError> {
        hosts_of(&topology_of_plan(name, relative_to)?, set)
    }
}

impl Surroundings for NoPlanFiles {
    fn include(&self, name: &str, _: &str) -> Result<Source, SurroundingsError> {
        Err(SurroundingsError::File { file: name.to_owned(), source: not_read() })
    }

    fn topology(&self, name: &str, _: &str) -> Result<Source, SurroundingsError> {
        bundled_topology(name).ok_or_else(|| no_topology(name, name.to_owned(), not_read()))
    }

    fn hosts(
        &self,
        name: &str,
        set: &[(&str, &str)],
        relative_to: &str,
    ) -> Result<Vec<String>, SurroundingsError> {
        hosts_of(&self.topology(name, relative_to)?, set)
    }
}

fn not_read() -> io::Error {
    io::Error::other("files of this host are not read here")
}

fn hosts_of(source: &Source, set: &[(&str, &str)]) -> Result<Vec<String>, SurroundingsError> {
    let Source { name: file, text } = source;
    let typed = set.iter().map(|(key, value)| format!("{key}={value}").parse());
    let settings: Vec<Override> = typed
        .collect::<Result<_, _>>()
        .map_err(|error: topology::OverrideError| SurroundingsError::Network(Box::new(error)))?;
    let network = topology::read(text, file, &settings)
        .map_err(|error| SurroundingsError::Network(Box::new(InOneLine(error))))?;
    Ok(network.hosts.into_iter().map(|host| host.name).collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::find_plan;
    use linerate_plan::{bundled, read};

    #[test]
    fn every_bundled_plan_reads_with_the_topologies_that_come_along() {
        for known in bundled() {
            let plan = read(find_plan(known.name).unwrap(), &[], &PlanFiles)
                .unwrap_or_else(|error| panic!("{error}"));
            assert!(plan.estimate().is_ok_and(|estimate| estimate.trials > 0), "{}", known.name);
        }
    }

    #[test]
    fn a_lab_that_cannot_be_is_refused_with_the_reason() {
        let wrong = |set: &str| {
            read(find_plan("window-sweep").unwrap(), &[set.to_owned()], &PlanFiles).unwrap_err().to_string()
        };
        let unknown = wrong("lab.set.link.b.dely=5ms");
        assert!(unknown.contains("did you mean 'delay'?"), "{unknown}");
        let missing = wrong("lab.topology=long-hall");
        assert!(missing.contains("no bundled topology 'long-hall'; did you mean 'long-haul'?"), "{missing}");
        assert!(missing.contains("long-hall cannot be read either: No such file"), "{missing}");
    }

    #[test]
    fn a_plan_from_elsewhere_reads_no_files_of_this_host() {
        for known in bundled() {
            assert!(read_without_files(known.text, &[]).is_ok(), "{}", known.name);
        }
        for text in ["include = [\"/etc/hostname\"]\n", "[lab]\ntopology = \"/etc/hostname\"\n"] {
            let error = read_without_files(text, &[]).unwrap_err().to_string();
            assert!(error.contains("files of this host are not read here"), "{text}: {error}");
        }
        let set = ["lab.topology=/etc/hostname".to_owned()];
        let error = read_without_files("", &set).unwrap_err().to_string();
        assert!(error.contains("not read here"), "{error}");
    }

    #[test]
    fn a_plan_in_an_own_topology_is_another_measurement_when_that_file_has_changed() {
        let folder = tempfile::tempdir().unwrap();
        let pair = bundled_topology("pair").unwrap().text;
        let content = |topology: &str| {
            std::fs::write(folder.path().join("mine.toml"), topology).unwrap();
            let name = folder.path().join("plan.toml").display().to_string();
            let plan =
                read(Source { name, text: "lab.topology = \"mine.toml\"\n".to_owned() }, &[], &PlanFiles);
            plan.unwrap_or_else(|error| panic!("{error}")).point(0).unwrap().content
        };
        assert_eq!(content(&pair), content(&pair));
        assert_ne!(content(&pair), content(&format!("{pair}\n# of another day\n")));
    }

    #[test]
    fn the_paths_of_a_topology_have_the_links_between_two_hosts() {
        let paths = topology_paths("pair", "").unwrap();
        let [((from, to), links)] = &paths[..] else { panic!("{paths:?}") };
        assert_eq!((from.as_str(), to.as_str()), ("a", "b"));
        assert_eq!(links.iter().map(|(_, members)| *members).collect::<Vec<_>>(), [1, 1]);
        assert!(topology_paths("pairs", "").unwrap_err().to_string().contains("did you mean 'pair'?"));
    }

    #[test]
    fn included_files_are_found_next_to_the_one_that_includes_them() {
        assert_eq!(resolve("test-bed.toml", "plans/mine.toml"), Path::new("plans/test-bed.toml"));
        assert_eq!(resolve("test-bed.toml", "mine.toml"), Path::new("test-bed.toml"));
        assert_eq!(resolve("/etc/test-bed.toml", "plans/mine.toml"), Path::new("/etc/test-bed.toml"));
    }
}
