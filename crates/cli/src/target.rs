//! The running function that a command addresses: `--run NAME` or `--control PATH`.

use std::path::PathBuf;

use clap::Args;
use millrace_control::client::Client;
use millrace_control::socket;

use crate::failure::Failure;

/// The flags.
#[derive(Args)]
pub struct Target {
    /// The run, by the name of its function or of its own; not needed where there is only one
    #[arg(long, value_name = "NAME", global = true)]
    run: Option<String>,

    /// The run, by its control socket
    #[arg(long, value_name = "PATH", global = true, conflicts_with = "run")]
    control: Option<PathBuf>,
}

impl Target {
    /// Connects to it.
    ///
    /// # Errors
    /// There is no such run, or several, or it does not answer.
    pub fn connect(&self) -> Result<Client, Failure> {
        Ok(Client::connect(&self.path()?)?)
    }

    /// The same where the command itself may name the run.
    ///
    /// # Errors
    /// It is named twice; and those of [`Target::connect`].
    pub fn connect_to(&self, named: Option<&str>) -> Result<Client, Failure> {
        match named {
            // Not said by clap: in the shell, which is of one run, there are no such options.
            Some(name) if self.run.is_some() || self.control.is_some() => {
                Err(Failure::wrong(format!("{name}: the run is named twice"))
                    .help("leave out --run and --control, or the name"))
            }
            Some(name) => Ok(Client::connect(&socket::find(Some(name))?)?),
            None => self.connect(),
        }
    }

    /// Its socket.
    ///
    /// # Errors
    /// There is no such run, or several.
    pub fn path(&self) -> Result<PathBuf, Failure> {
        match &self.control {
            Some(path) => Ok(path.clone()),
            None => Ok(socket::find(self.run.as_deref())?),
        }
    }
}
