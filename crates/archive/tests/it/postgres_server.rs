//! A PostgreSQL server for tests. The tests of the whole program use this file too.

use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};

use postgres::{Client, NoTls};

/// A PostgreSQL server for the tests of this program, by default without a network.
pub(crate) struct PostgresServer {
    pub(crate) folder: PathBuf,
    user: &'static str,
    port: u16,
    settings: Vec<String>,
}

impl PostgresServer {
    /// A server of its own, and its process.
    pub(crate) fn start() -> (Self, Child) {
        Self::start_with(5432, |_| vec!["listen_addresses=".to_owned()])
    }

    /// A server at a port, with settings that `prepare` returns. It may put files into the server's folders first.
    pub(crate) fn start_with(port: u16, prepare: impl FnOnce(&Self) -> Vec<String>) -> (Self, Child) {
        static STARTED: AtomicU32 = AtomicU32::new(0);
        remove_leftovers();
        let name = format!("{PREFIX}{}-{}", std::process::id(), STARTED.fetch_add(1, Ordering::Relaxed));
        let folder = std::env::temp_dir().join(name);
        std::fs::create_dir_all(&folder).unwrap();
        std::fs::set_permissions(&folder, PermissionsExt::from_mode(0o777)).unwrap();
        let mut server = Self { folder, user: "linerate", port, settings: Vec::new() };
        let data = server.folder.join("data");
        let initdb = server
            .as_its_user("initdb")
            .args(["-U", server.user, "--auth=trust", "-N", "-D"])
            .arg(&data)
            .output();
        let initdb = initdb.unwrap();
        assert!(initdb.status.success(), "{}", String::from_utf8_lossy(&initdb.stderr));
        server.settings = prepare(&server);
        let process = server.run();
        server.wait_until_ready();
        (server, process)
    }

    /// Starts the server again, after its process has ended.
    pub(crate) fn run(&self) -> Child {
        let mut server = self.as_its_user("postgres");
        server.arg("-D").arg(self.folder.join("data")).arg("-k").arg(&self.folder);
        server.args(["-p", &self.port.to_string(), "-c", "fsync=off", "-c", "max_connections=50"]);
        server.args(self.settings.iter().flat_map(|setting| ["-c", setting]));
        server.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap()
    }

    /// Ends the server at once, as a crash would, with its own processes.
    pub(crate) fn stop(mut process: Child) {
        assert!(Command::new("kill").args(["-QUIT", &process.id().to_string()]).status().unwrap().success());
        process.wait().unwrap();
    }

    /// Waits until the server answers.
    #[expect(
        clippy::disallowed_methods,
        clippy::panic,
        reason = "this crate has no clock; a test that cannot begin fails"
    )]
    pub(crate) fn wait_until_ready(&self) {
        for _ in 0..600 {
            if Client::connect(&self.url("postgres"), NoTls).is_ok() {
                return;
            }
            std::thread::sleep(std::time::Duration::from_millis(100));
        }
        panic!("the PostgreSQL server of the test did not start within a minute");
    }

    pub(crate) fn url(&self, database: &str) -> String {
        let folder = self.folder.to_str().unwrap().replace('/', "%2F");
        format!("postgres://{}@{folder}:{}/{database}", self.user, self.port)
    }

    /// A program of the server, which refuses to run as root, and ends with the thread that started it.
    pub(crate) fn as_its_user(&self, program: &str) -> Command {
        let mut command = Command::new("setpriv");
        command.current_dir(&self.folder).args(["--pdeathsig", "INT"]);
        if is_root() {
            command.args(["--reuid=postgres", "--regid=postgres", "--clear-groups"]);
        }
        command.arg(programs().join(program));
        command
    }
}

impl Drop for PostgresServer {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.folder);
    }
}

/// Names of the folders of servers begin with this, and end with the number of the process of the tests.
const PREFIX: &str = "linerate-postgres-";

/// Removes the folders of test programs that have ended: the shared server cannot do that itself.
fn remove_leftovers() {
    for folder in std::fs::read_dir(std::env::temp_dir()).unwrap().flatten() {
        let name = folder.file_name().into_string().unwrap_or_default();
        let process = name.strip_prefix(PREFIX).and_then(|rest| rest.split('-').next());
        if process.is_some_and(|process| !Path::new("/proc").join(process).exists()) {
            let _ = std::fs::remove_dir_all(folder.path());
        }
    }
}

/// The folder with the programs of the newest installed server (package postgresql): packages keep them out of the search path.
fn programs() -> PathBuf {
    let versions = std::fs::read_dir("/usr/lib/postgresql").unwrap();
    let number = |path: &PathBuf| path.file_name().and_then(|name| name.to_str()?.parse::<u32>().ok());
    versions.flatten().map(|version| version.path()).max_by_key(number).unwrap().join("bin")
}

fn is_root() -> bool {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let user = status.lines().find_map(|line| line.strip_prefix("Uid:")).unwrap();
    user.split_whitespace().nth(1) == Some("0")
}
