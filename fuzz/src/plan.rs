//! A plan file, and what it expands to.

use linerate_emu::topology::{self, Override};
use linerate_plan::{
    AssertionQuantity, Measurements, QuantityScope, QuantityValue, Source, Surroundings, SurroundingsError,
    bundled, judge, read,
};

/// No other file, and the bundled topologies.
struct BundledSurroundings;

impl Surroundings for BundledSurroundings {
    fn include(&self, name: &str, _: &str) -> Result<Source, SurroundingsError> {
        let source = std::io::ErrorKind::NotFound.into();
        Err(SurroundingsError::File { file: name.to_owned(), source })
    }

    fn topology(&self, name: &str, _: &str) -> Result<Source, SurroundingsError> {
        let known = topology::bundled().iter().find(|known| known.name == name);
        let wrong = |why: String| SurroundingsError::Network(why.into());
        let known = known.ok_or_else(|| wrong(format!("there is no topology {name}")))?;
        Ok(Source { name: name.to_owned(), text: known.text.to_owned() })
    }

    fn hosts(
        &self,
        name: &str,
        set: &[(&str, &str)],
        relative_to: &str,
    ) -> Result<Vec<String>, SurroundingsError> {
        let wrong = |why: String| SurroundingsError::Network(why.into());
        let text = self.topology(name, relative_to)?.text;
        let settings: Result<Vec<Override>, _> =
            set.iter().map(|(key, value)| format!("{key}={value}").parse()).collect();
        let settings = settings.map_err(|error| wrong(error.to_string()))?;
        let network = topology::read(&text, name, &settings).map_err(|error| wrong(error.to_string()))?;
        Ok(network.hosts.into_iter().map(|host| host.name).collect())
    }
}

/// Measurements for every second point.
struct Every;

impl Measurements for Every {
    fn measured(&self, scope: QuantityScope<'_>, quantity: &AssertionQuantity) -> Option<QuantityValue> {
        let there = scope.point.to_string().ends_with(['0', '2', '4', '6', '8', 'a', 'c', 'e']);
        let word = quantity.words().into_iter().next();
        there.then(|| word.map_or(QuantityValue::Number(1e9), QuantityValue::Word))
    }
}

/// Reads a plan; a plan that is accepted must expand to the size it declares.
pub fn plan(bytes: &[u8]) {
    let text = String::from_utf8_lossy(bytes).into_owned();
    let source = Source { name: "fuzz.toml".to_owned(), text };
    let plan = match read(source, &[], &BundledSurroundings) {
        Ok(plan) => plan,
        Err(error) => {
            assert!(!error.to_string().is_empty());
            return;
        }
    };
    assert_eq!(plan.trials().len(), plan.grid.len() * plan.repeats as usize);
    // A plan of any size is valid, but large ones take too long here.
    if plan.grid.len() > 500 {
        return;
    }
    for number in 0..plan.grid.len() {
        let point = plan.point(number).expect("a plan that was read has sound points");
        let choice = plan.grid.choice(number).unwrap_or_default();
        assert_eq!(plan.grid.find(&choice), Some(number));
        // An axis over flows leaves some out.
        assert!(!point.tests.is_empty() && point.tests.len() <= plan.flows.len());
        assert_eq!(plan.schedule(&point).len(), point.tests.len());
    }
    assert!(plan.estimate().is_ok());
    let _ = judge(&plan, &Every);
    if let Some(search) = &plan.search {
        let mut bisection = search.begin();
        for round in 0..search.trials() {
            bisection.passed(round % 3 == 0);
        }
    }
}

/// The bundled plans, and one with features that they lack.
pub(crate) fn seeds() -> Vec<Vec<u8>> {
    let odd = "zip = [[\"window\", \"length\"]]\nexclude = [{ streams = 2, window = [1000] }]\norder = \"shuffled\"\n\
        assert = [\"goodput >= 0.9 point(streams=1).goodput\", \"verdict != unknown\", \"rtt <= 2 run('x').rtt_idle\"]\n\
        [host.a]\n[host.b]\nmtu = 9000\n[flow.x]\nfrom = \"a\"\nto = \"b\"\n[flow.y]\nfrom = \"b\"\nto = \"a\"\nafter = \"x\"\nat = 1\n\
        [axis]\nwho = { key = \"flows\", values = [\"x\", \"x y\"] }\nwindow = [1000, 2000]\nlength = [10, 20]\nstreams = { from = 1, to = 4, factor = 2 }\n";
    bundled().iter().map(|known| known.text).chain([odd]).map(|text| text.as_bytes().to_vec()).collect()
}
