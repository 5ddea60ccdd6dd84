//! `millrace emit`: the generated code itself.

use clap::{Args, ValueEnum};

use crate::failure::{DONE, Failure};
use crate::{budget, function, screen};

/// Print the code that is generated for a function.
#[derive(Args)]
pub struct Emit {
    /// The function: a source (.c), an object (.o, FILE.o:PROGRAM), a folder with NAME.c, or the name
    /// of a folder in ./nfs, $MILLRACE_NFS or share/millrace/nfs
    nf: String,

    /// What to generate
    #[arg(long, value_enum, default_value_t = Target::C)]
    target: Target,

    /// Print one JSON document: `name`, `target`, `text`
    #[arg(long)]
    json: bool,
}

/// What can be generated.
#[derive(Clone, Copy, ValueEnum)]
enum Target {
    /// C for one core, the reference
    C,
}

impl Emit {
    /// Whether standard output is for one JSON document.
    pub fn json(&self) -> bool {
        self.json
    }

    /// Prints it, and gives the exit status.
    pub fn perform(&self) -> Result<u8, Failure> {
        let Target::C = self.target;
        let written = function::read(&self.nf, &function::make(&[], &[], None)?)?;
        let text = written.check(budget::begin())?.emit()?;
        if self.json {
            screen::document(
                &serde_json::json!({ "name": written.program.name, "target": "c", "text": text }),
            );
        } else {
            screen::out(text.trim_end());
        }
        Ok(DONE)
    }
}
