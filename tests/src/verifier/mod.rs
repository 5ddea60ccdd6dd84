//! Suites of programs that say of themselves whether a verifier must admit them, as a measure of the checker.
//!
//! The suites are not part of this repository: a folder of objects is named. What is in it is compared with
//! the checker program by program, and the differences with a list in `tests/verifier`, which explains each.

pub mod list;
pub mod run;
pub mod suite;

use std::collections::BTreeMap;

/// A program of a suite.
#[derive(Clone, Debug)]
pub struct Case {
    /// the object's file name
    pub file: String,
    /// the function's
    pub function: String,
    /// its section
    pub section: String,
    /// whether the suite's verifier admits it
    pub admits: bool,
    /// whether it admits it to unprivileged users, where the suite says so
    pub unprivileged: Option<bool>,
    /// what `r0` holds at the end, in its lower 32 bits
    pub result: Option<u32>,
}

impl Case {
    /// `FILE/FUNCTION`, as lists have it.
    #[must_use]
    pub fn name(&self) -> String {
        format!("{}/{}", self.file, self.function)
    }
}

/// Where suite and checker stand.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Standing {
    /// both admit it
    Admitted,
    /// both refuse it
    Refused,
    /// the suite's verifier refuses what is admitted here
    Wider,
    /// the suite's verifier admits what is refused here
    Narrower,
}

/// What the checker says of a program.
#[derive(Clone, Debug)]
pub struct Answer {
    /// the program
    pub case: Case,
    /// the rule that it breaks here, and the reason
    pub refused: Option<(String, String)>,
}

impl Answer {
    /// How the two verdicts compare.
    #[must_use]
    pub fn standing(&self) -> Standing {
        match (self.case.admits, self.refused.is_none()) {
            (true, true) => Standing::Admitted,
            (false, false) => Standing::Refused,
            (false, true) => Standing::Wider,
            (true, false) => Standing::Narrower,
        }
    }

    /// The rule that it breaks, or nothing.
    #[must_use]
    pub fn rule(&self) -> &str {
        self.refused.as_ref().map_or("", |(rule, _)| rule)
    }

    /// Why the checker may refuse it whatever the suite says, if its rule alone tells.
    #[must_use]
    pub fn foreign(&self) -> Option<&'static str> {
        const ELSEWHERE: &[(&str, &str)] = &[
            ("unknown-helper", "a helper that XDP programs do not have"),
            (
                "unknown-kfunc",
                "a kernel function that XDP programs do not have",
            ),
            ("unknown-map-type", "a map type that is refused by name"),
            ("context-field", "a field of another program type's context"),
            ("context-write", "a field of another program type's context"),
            ("legacy-packet-load", "a load of classic BPF"),
            ("undefined-symbol", "a variable of the kernel's"),
        ];
        let found = ELSEWHERE.iter().find(|(rule, _)| *rule == self.rule());
        match found {
            Some((_, why)) => Some(why),
            None if self.case.unprivileged == Some(false) => {
                Some("the kernel refuses it to unprivileged users, too")
            }
            None => None,
        }
    }
}

/// How many programs there are of each standing, by a key.
#[must_use]
pub fn counts<'a>(
    answers: &'a [Answer],
    key: impl Fn(&'a Answer) -> String,
) -> BTreeMap<String, [usize; 4]> {
    let mut counts: BTreeMap<String, [usize; 4]> = BTreeMap::new();
    for answer in answers {
        let place = counts.entry(key(answer)).or_default();
        if let Some(count) = place.get_mut(answer.standing() as usize) {
            *count += 1;
        }
    }
    counts
}

/// The counts as a table in Markdown.
#[must_use]
pub fn table(head: &str, counts: &BTreeMap<String, [usize; 4]>) -> String {
    let mut text = format!(
        "| {head} | both admit | both refuse | refused there, admitted here | admitted there, refused here |\n| --- | --- | --- | --- | --- |\n"
    );
    let mut total = [0; 4];
    for (name, counts) in counts {
        let [admitted, refused, wider, narrower] = counts;
        text += &format!("| {name} | {admitted} | {refused} | {wider} | {narrower} |\n");
        for (sum, count) in total.iter_mut().zip(counts) {
            *sum += count;
        }
    }
    let [admitted, refused, wider, narrower] = total;
    text + &format!("| all | {admitted} | {refused} | {wider} | {narrower} |\n")
}
