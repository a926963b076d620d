//! The disk of a database: a file system of its own, which can be made full for a while.

use std::{path::PathBuf, process::Command};

/// A tmpfs that is unmounted when it is dropped.
pub(crate) struct Disk {
    pub(crate) folder: PathBuf,
    is_tmpfs: bool,
}

/// Mount option for the usual size of the file system, which is never used up.
const SIZE_OPTION: &str = "size=8g";

impl Disk {
    /// Mounts a tmpfs on an empty folder.
    pub(crate) fn mount(folder: PathBuf) -> Self {
        let mounted =
            mount(&["-t", "tmpfs", "-o", &format!("{SIZE_OPTION},mode=1777"), "tmpfs"], &folder);
        assert!(mounted, "a tmpfs cannot be mounted here: run as root, or --without-full-disks");
        Self { folder, is_tmpfs: true }
    }

    /// Uses the folder as it is. Such a disk can never be filled.
    pub(crate) fn from_folder(folder: PathBuf) -> Self {
        Self { folder, is_tmpfs: false }
    }

    pub(crate) fn can_be_full(&self) -> bool {
        self.is_tmpfs
    }

    /// Limits the file system to its present contents and this many KiB more.
    pub(crate) fn leave_free(&self, kib: u64) {
        let used = Command::new("df").args(["--output=used", "-k"]).arg(&self.folder).output();
        let used = String::from_utf8(used.expect("df is there").stdout).expect("text");
        let used: u64 = used.lines().last().and_then(|line| line.trim().parse().ok()).expect("KiB");
        // The result is ignored: by the time the limit is set, other writes may have exceeded it.
        let _limited = mount(&["-o", &format!("remount,size={}k", used + kib)], &self.folder);
    }

    /// Gives the file system its usual size again.
    pub(crate) fn remove_limit(&self) {
        assert!(
            mount(&["-o", &format!("remount,{SIZE_OPTION}")], &self.folder),
            "the disk stays full"
        );
    }
}

impl Drop for Disk {
    fn drop(&mut self) {
        if self.is_tmpfs {
            // A lazy unmount: a process that has a file open may end later.
            let _gone = Command::new("umount").arg("-l").arg(&self.folder).status();
        }
    }
}

fn mount(arguments: &[&str], folder: &PathBuf) -> bool {
    let status = Command::new("mount").args(arguments).arg(folder).status();
    status.is_ok_and(|status| status.success())
}
