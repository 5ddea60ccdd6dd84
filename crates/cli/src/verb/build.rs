//! `millrace build`: a bundle that runs without clang.

use std::path::PathBuf;

use clap::Args;
use millrace::bundle;

use crate::failure::{DONE, Failure};
use crate::quantity::duration;
use crate::{function, screen};

/// Build a bundle: a folder that runs without a compiler, on machines with this processor's features.
#[derive(Args)]
pub struct Build {
    /// The function: a source (.c), an object (.o), a folder with NAME.c, or the name of a folder in
    /// ./nfs, $MILLRACE_NFS or share/millrace/nfs
    nf: String,

    /// Only this program of an object that holds several
    #[arg(long, value_name = "NAME")]
    program: Option<String>,

    /// Give a state object room for this many entries, whatever its author declared
    #[arg(long = "capacity", value_name = "OBJECT=N")]
    capacity: Vec<String>,

    /// The folder to make
    #[arg(short, long = "output", value_name = "FOLDER")]
    output: PathBuf,

    /// Print one JSON document
    #[arg(long)]
    pub json: bool,
}

impl Build {
    /// Builds it, and gives the exit status.
    pub fn perform(&self) -> Result<u8, Failure> {
        let make = function::make(&[], &self.capacity, self.program.as_ref())?;
        let found = millrace::find(&self.nf)?;
        let built = function::shown(|progress| found.build(&make, progress))?;
        function::warn(&built.warnings);
        bundle::write(&self.output, &built)?;
        let (name, folder) = (&built.program.name, self.output.display());
        let time = duration(built.timings.total);
        screen::report(
            self.json,
            &format!("{name}: built in {time}; run it with: millrace run {folder} --in …"),
        );
        if self.json {
            screen::document(&serde_json::json!({
                "name": name,
                "bundle": folder.to_string(),
                "from_cache": built.from_cache,
                "seconds": built.timings.total.as_secs_f64(),
            }));
        }
        Ok(DONE)
    }
}
