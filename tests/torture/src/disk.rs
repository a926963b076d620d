//! A separate file system for a database, which can be full for a while.

use std::{path::PathBuf, process::Command};

/// A tmpfs that is unmounted when it is dropped.
pub(crate) struct Disk {
    pub(crate) folder: PathBuf,
    has_limit: bool,
}

/// Maximum size of the file system; the machine's memory may be smaller.
const ROOM: &str = "size=8g";

impl Disk {
    /// Mounts a tmpfs on an empty folder.
    pub(crate) fn mount(folder: PathBuf) -> Self {
        let mounted = mount(&["-t", "tmpfs", "-o", &format!("{ROOM},mode=1777"), "tmpfs"], &folder);
        assert!(mounted, "a tmpfs cannot be mounted here: run as root, or --without-full-disks");
        Self { folder, has_limit: true }
    }

    /// Returns the folder as it is: its disk is never full.
    pub(crate) fn of_folder(folder: PathBuf) -> Self {
        Self { folder, has_limit: false }
    }

    pub(crate) fn can_be_full(&self) -> bool {
        self.has_limit
    }

    /// Leaves room for this many KiB more from now on.
    pub(crate) fn limit(&self, more: u64) {
        let used = Command::new("df").args(["--output=used", "-k"]).arg(&self.folder).output();
        let used = String::from_utf8(used.expect("df is there").stdout).expect("text");
        let used: u64 = used.lines().last().and_then(|line| line.trim().parse().ok()).expect("KiB");
        // The result does not matter: other writes may exceed this size before it is set.
        let _limited = mount(&["-o", &format!("remount,size={}k", used + more)], &self.folder);
    }

    /// Makes room again.
    pub(crate) fn make_room(&self) {
        assert!(mount(&["-o", &format!("remount,{ROOM}")], &self.folder), "the disk stays full");
    }
}

impl Drop for Disk {
    fn drop(&mut self) {
        if self.has_limit {
            // Lazily: a process that has a file open may end later.
            let _gone = Command::new("umount").arg("-l").arg(&self.folder).status();
        }
    }
}

fn mount(arguments: &[&str], folder: &PathBuf) -> bool {
    let status = Command::new("mount").args(arguments).arg(folder).status();
    status.is_ok_and(|status| status.success())
}
