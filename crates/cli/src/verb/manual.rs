//! `millrace manual`: manual pages and shell completions, from the definition of each flag.

use std::path::PathBuf;

use clap::{Args, CommandFactory};
use clap_complete::Shell;

use crate::Millrace;
use crate::failure::{DONE, Failure};
use crate::screen;

/// Write the manual pages and the completions of bash, zsh and fish into a folder
#[derive(Args)]
pub struct Manual {
    /// The folder; pages go to man1, completions to completions
    #[arg(value_name = "FOLDER")]
    folder: PathBuf,
}

impl Manual {
    /// Writes them, and gives the exit status.
    pub fn perform(&self) -> Result<u8, Failure> {
        let wrong = |what: std::io::Error| {
            Failure::wrong(format!("{}: {what}", self.folder.display()))
                .help("name a folder that can be written")
        };
        let (pages, completions) = (self.folder.join("man1"), self.folder.join("completions"));
        for folder in [&pages, &completions] {
            std::fs::create_dir_all(folder).map_err(wrong)?;
        }
        clap_mangen::generate_to(Millrace::command(), &pages).map_err(wrong)?;
        for shell in [Shell::Bash, Shell::Zsh, Shell::Fish] {
            let mut command = Millrace::command();
            clap_complete::generate_to(shell, &mut command, "millrace", &completions)
                .map_err(wrong)?;
        }
        screen::out(&format!(
            "manual pages in {}, completions in {}",
            pages.display(),
            completions.display()
        ));
        Ok(DONE)
    }
}
