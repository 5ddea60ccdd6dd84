//! What can be done about one bucket of the indirection table that has more packets than a worker's part: a flow, or several whose hashes collide.

use std::path::PathBuf;

use millrace::Make;
use millrace::place::Purpose;
use millrace_place::Strategy;
use millrace_plan::Wanted;

/// A function, as far as it is asked whether its heavy flows can be replicated.
pub struct Recipe {
    /// what it is found by
    word: String,
    make: Make,
    name: String,
    cores: usize,
    nic: String,
}

impl Recipe {
    /// Of a function on so many workers, whose packets a NIC of this model steers.
    pub fn new(word: &str, make: Make, name: &str, cores: usize, nic: &str) -> Self {
        // Where this ends nobody may be any more who could be asked.
        let full = std::path::absolute(word).ok().filter(|path| path.exists());
        let word = full.unwrap_or_else(|| PathBuf::from(word));
        Self {
            word: word.display().to_string(),
            make,
            name: name.to_owned(),
            cores,
            nic: nic.to_owned(),
        }
    }

    /// Why heavy flows of it cannot be replicated beside others that are divided; none: they can. Makes the model and the plan anew, which may
    /// take seconds.
    fn obstacle(&self) -> Option<String> {
        let found = || {
            let written = millrace::find(&self.word)?.read(&self.make)?;
            let budget = self.make.begin();
            let proved = written.check(budget)?;
            let purpose = Purpose::of(Some(Strategy::Hybrid), false);
            let within = (millrace_model::SECONDS, budget);
            let mut model = proved.model_for(purpose, within, &mut || {});
            let wanted = Wanted {
                cores: self.cores as u32,
                nic: self.nic.clone(),
                strategy: Some(Strategy::Hybrid),
                budget: Some(budget),
                ..Wanted::default()
            };
            proved.plan(&mut model, &wanted)?;
            Ok::<(), millrace::Error>(())
        };
        found().err().map(|error| error.what)
    }

    /// What is said of a bucket that has this share of the packets, 0 to 1.
    pub fn told(&self, bucket: usize, share: f64) -> String {
        let name = &self.name;
        let what = format!(
            "bucket {bucket} alone has {:.0} % of the packets: no table shares that out",
            100.0 * share
        );
        match self.obstacle() {
            None => format!(
                "{what}; run {name} with `--strategy hybrid`, which replicates heavy flows beside the others"
            ),
            Some(why) => format!("{what}, and heavy flows of {name} cannot be replicated: {why}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn told(name: &str) -> String {
        let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../nfs/");
        let recipe = Recipe::new(
            &format!("{folder}{name}"),
            Make::default(),
            name,
            2,
            "software",
        );
        recipe.told(44, 0.614)
    }

    #[test]
    fn what_helps_is_named_or_why_nothing_does() {
        let said = told("ddos");
        let what = "bucket 44 alone has 61 % of the packets: no table shares that out";
        assert!(said.starts_with(what), "{said}");
        assert!(said.contains("run ddos with `--strategy hybrid`"), "{said}");
        let said = told("dnstunnel");
        assert!(said.starts_with(what), "{said}");
        assert!(
            said.contains("heavy flows of dnstunnel cannot be replicated: "),
            "{said}"
        );
    }
}
