//! An artificial change of the rate, and none: the results of `linerate compare`.

use std::path::Path;

use serde_json::Value;

use super::super::BenchContext;
use super::super::figure::FigureReadings;
use super::super::tools::TIMEOUT;
use super::length;
use super::network::{LabNetwork, Upload};
use crate::process::ChildProcess;
use crate::temp_folder::TempFolder;

/// Rate of the port in each configuration: the base, one per cent more, and the base again.
const RATES: [(&str, &str); 3] = [("base", "100M"), ("more", "101M"), ("same", "100M")];

/// Fifteen repeats of each configuration in turn; 1 if the change is found, and 1 if a change is found where
/// there is none.
pub(super) fn planted(bed: &BenchContext) -> Result<Vec<FigureReadings>, String> {
    let network = LabNetwork::up(bed, "pair", &["link.b.rate=100M"])?;
    let folder = TempFolder::create("bench-ab")?;
    let repeats = if bed.quick { 6 } else { 15 };
    let upload =
        Upload { from: "a", to: "b", length: length(bed, 2, 1), options: &["-C", "cubic", "-O", "1"] };
    for repeat in 0..repeats {
        for (name, rate) in RATES {
            network.set("link.b", &format!("rate={rate}"))?;
            let run = network.upload(&upload, || ())?;
            let file = folder.file(&format!("{name}-{repeat}"));
            std::fs::write(&file, run.text()).map_err(|error| format!("{}: {error}", file.display()))?;
        }
    }
    let found = compared(bed, folder.path(), repeats, "more")?;
    let none = compared(bed, folder.path(), repeats, "same")?;
    Ok(vec![found.reading("higher", repeats), none.reading("not_shown", repeats).turned()])
}

/// Result for the goodput.
struct GoodputComparison {
    outcome: String,
    relative: f64,
    p: f64,
}

impl GoodputComparison {
    /// 1 if the outcome is as given.
    fn reading(&self, outcome: &str, repeats: u32) -> FigureReadings {
        let note = format!(
            "{repeats} repeats in turn: {}, {:+.3} %, p = {:.4}",
            self.outcome,
            self.relative * 100.0,
            self.p
        );
        let expected = self.outcome == outcome || (outcome == "not_shown" && self.outcome == "below_noise");
        FigureReadings::once(f64::from(u8::from(expected)), note)
    }
}

impl FigureReadings {
    /// Swaps 0 and 1.
    fn turned(mut self) -> Self {
        self.all.iter_mut().for_each(|reading| *reading = 1.0 - *reading);
        self
    }
}

fn compared(
    bed: &BenchContext,
    folder: &Path,
    repeats: u32,
    other: &str,
) -> Result<GoodputComparison, String> {
    let files = |name: &str| {
        let file = |repeat| folder.join(format!("{name}-{repeat}")).display().to_string();
        format!("{name}={}", (0..repeats).map(file).collect::<Vec<_>>().join(","))
    };
    let words = ["compare", "--json", "--quantity", "goodput", &files("base"), &files(other)];
    let command: Vec<String> = std::iter::once(bed.linerate.display().to_string())
        .chain(words.iter().map(|word| (*word).to_owned()))
        .collect();
    let output = ChildProcess::start(bed, &command)?.finish(TIMEOUT, |_| ())?;
    let document: Value = serde_json::from_slice(&output)
        .map_err(|error| format!("linerate compare printed no JSON: {error}"))?;
    let comparison = &document["comparisons"][0];
    let number = |key: &str| comparison[key].as_f64().ok_or_else(|| format!("the comparison has no {key}"));
    let outcome = comparison["outcome"].as_str().ok_or("the comparison has no outcome")?.to_owned();
    Ok(GoodputComparison { outcome, relative: number("relative")?, p: number("p")? })
}
