//! Where results go: standard output, or a file that is replaced in one step.

use anyhow::Context;
use std::io::Write;
use std::path::Path;

/// Writes the result. A file appears whole or not at all: the bytes go to a temporary neighbour first.
pub(crate) fn write(path: Option<&Path>, bytes: &[u8]) -> anyhow::Result<()> {
    let Some(path) = path else {
        let mut out = std::io::stdout().lock();
        out.write_all(bytes)?;
        return Ok(out.flush()?);
    };
    let failed = || format!("{}: cannot write", path.display());
    let folder = path.parent().filter(|p| !p.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let mut file = tempfile::Builder::new()
        .prefix(".gibbsite-")
        .permissions(permissions())
        .tempfile_in(folder)
        .with_context(failed)?;
    file.write_all(bytes).with_context(failed)?;
    file.persist(path).map_err(|e| e.error).with_context(failed)?;
    Ok(())
}

/// A new file's usual mode, before the umask; temporary files are private otherwise.
#[cfg(unix)]
fn permissions() -> std::fs::Permissions {
    std::os::unix::fs::PermissionsExt::from_mode(0o666)
}

/// Whether somebody closed the pipe that we write to (`gibbsite … | head`): not an error.
pub(crate) fn is_broken_pipe(error: &anyhow::Error) -> bool {
    let io = error.downcast_ref::<std::io::Error>();
    io.is_some_and(|e| e.kind() == std::io::ErrorKind::BrokenPipe)
}
