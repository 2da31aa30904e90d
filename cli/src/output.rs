//! Where results go: standard output, or a file that is replaced in one step. And lines to standard error.

use anyhow::{Context, bail};
use std::fs;
use std::io::Write;
use std::path::Path;

/// Fails if a result could not be written there: better now than after an hour of work.
pub(crate) fn check(path: Option<&Path>) -> anyhow::Result<()> {
    let Some(path) = path else { return Ok(()) };
    if path.is_dir() {
        bail!("{}: cannot write: it is a folder, expected a file", path.display());
    }
    let folder = folder(path);
    if !folder.is_dir() {
        bail!("{}: cannot write: there is no folder {}", path.display(), folder.display());
    }
    Ok(())
}

/// Writes the result. A file appears whole or not at all: the bytes go to a temporary neighbour first. What
/// is there but is no file, such as `/dev/null` or a named pipe, is written to, not replaced.
pub(crate) fn write(path: Option<&Path>, bytes: &[u8]) -> anyhow::Result<()> {
    let Some(path) = path else {
        let mut out = std::io::stdout().lock();
        return out.write_all(bytes).and_then(|()| out.flush()).context("standard output: cannot write");
    };
    let failed = || format!("{}: cannot write", path.display());
    let before = fs::metadata(path).ok();
    if before.as_ref().is_some_and(|m| !m.is_file()) {
        let mut device = fs::OpenOptions::new().write(true).open(path).with_context(failed)?;
        return device.write_all(bytes).with_context(failed);
    }
    // A link stays one: the file that it leads to is replaced.
    let target = fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
    let mut temporary = tempfile::Builder::new();
    temporary.prefix(".gibbsite-");
    #[cfg(unix)]
    // A new file's usual mode, before the umask; temporary files are private otherwise.
    temporary.permissions(std::os::unix::fs::PermissionsExt::from_mode(0o666));
    let mut file = temporary.tempfile_in(folder(&target)).with_context(failed)?;
    file.write_all(bytes).with_context(failed)?;
    if let Some(before) = before {
        file.as_file().set_permissions(before.permissions()).with_context(failed)?;
    }
    file.as_file().sync_all().with_context(failed)?;
    file.persist(&target).map_err(|e| e.error).with_context(failed)?;
    Ok(())
}

/// A file without a name in the folder of another one, gone when it is closed.
pub(crate) fn temporary(beside: &Path) -> anyhow::Result<fs::File> {
    let folder = folder(beside);
    tempfile::tempfile_in(folder)
        .with_context(|| format!("{}: cannot make a temporary file", folder.display()))
}

fn folder(path: &Path) -> &Path {
    path.parent().filter(|p| !p.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

/// A line on standard error. Nobody may be listening there, which is no reason to fail (`eprintln!` would panic).
pub(crate) fn say(line: &str) {
    let _ = writeln!(std::io::stderr(), "{line}");
}

/// Whether somebody closed the pipe that we write to (`gibbsite … | head`): not an error.
pub(crate) fn is_broken_pipe(error: &anyhow::Error) -> bool {
    let io = error.downcast_ref::<std::io::Error>();
    io.is_some_and(|e| e.kind() == std::io::ErrorKind::BrokenPipe)
}
