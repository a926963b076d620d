//! The kinds of work whose costs are counted: creates, reads, labels and webhooks.

use std::{
    fmt::{self, Display},
    path::Path,
    str::FromStr,
};

use crate::measured_server::MeasuredServer;

/// A kind of work.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Work {
    /// Creates an order under a random key, in a commit of its own.
    Create,
    /// Creates an order with e-mail addresses on a server that sends e-mails.
    CreateWithMail,
    /// Sends an existing order again.
    Repeat,
    Tracking,
    List,
    ListByStatus,
    LabelPdf,
    LabelPng,
    LabelZpl,
    /// Sends an order's webhook, from the event's commit to the acknowledgement.
    Webhook,
    /// Creates this many orders in one commit, without HTTP.
    Group(usize),
    /// Creates an order in an in-memory store with the same contents.
    InMemory,
}

impl Work {
    /// The numbers of orders in a commit.
    pub(crate) const GROUPS: [usize; 3] = [1, 12, 64];
    /// The kinds that go over HTTP, and the webhook. Each has its number of instructions and allocations.
    pub(crate) const OVER_HTTP: [Self; 10] = [
        Self::Create,
        Self::CreateWithMail,
        Self::Repeat,
        Self::Tracking,
        Self::List,
        Self::ListByStatus,
        Self::LabelPdf,
        Self::LabelPng,
        Self::LabelZpl,
        Self::Webhook,
    ];

    /// Returns the number of repetitions: enough for a stable figure, few enough for a short run.
    pub(crate) const fn repetitions(self) -> usize {
        match self {
            Self::Create
            | Self::CreateWithMail
            | Self::Repeat
            | Self::Tracking
            | Self::Group(1)
            | Self::InMemory => 200,
            Self::List | Self::ListByStatus | Self::Webhook => 50,
            Self::LabelPdf | Self::LabelPng | Self::LabelZpl | Self::Group(_) => 10,
        }
    }

    /// Returns the number of orders that each repetition creates.
    pub(crate) const fn orders_per_repetition(self) -> usize {
        match self {
            Self::Group(orders) => orders,
            _ => 1,
        }
    }
}

impl Display for Work {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Create => f.write_str("a create"),
            Self::CreateWithMail => f.write_str("a create, e-mails on"),
            Self::Repeat => f.write_str("a repeat"),
            Self::Tracking => f.write_str("a tracking record"),
            Self::List => f.write_str("a list, page 1"),
            Self::ListByStatus => f.write_str("a list by status, page 1"),
            Self::LabelPdf => f.write_str("a label, PDF"),
            Self::LabelPng => f.write_str("a label, PNG"),
            Self::LabelZpl => f.write_str("a label, ZPL"),
            Self::Webhook => f.write_str("a webhook, from commit to receipt"),
            Self::Group(orders) => write!(f, "an order, groups of {orders}"),
            Self::InMemory => f.write_str("an order in memory"),
        }
    }
}

impl FromStr for Work {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let mut all = Self::OVER_HTTP
            .into_iter()
            .chain(Self::GROUPS.map(Self::Group))
            .chain([Self::InMemory]);
        all.find(|work| work.to_string() == text)
            .ok_or_else(|| format!("unknown kind of work: {text}"))
    }
}

/// Performs the work on the database; the whole process does nothing else.
pub(crate) fn run(work: Work, times: usize, database: &Path) {
    let server = match work {
        Work::InMemory => MeasuredServer::start_in_memory(database),
        _ => MeasuredServer::start(database),
    };
    if work == Work::CreateWithMail {
        server.enable_mails();
    }
    let mut worker = Worker::new(server);
    worker.perform(work, times);
    worker.finish();
}

/// Performs work on a server.
pub(crate) struct Worker {
    server: MeasuredServer,
    /// The index of the next sampled parcel.
    next: usize,
}

impl Worker {
    pub(crate) const fn new(server: MeasuredServer) -> Self {
        Self { server, next: 0 }
    }

    pub(crate) fn perform(&mut self, work: Work, times: usize) {
        match work {
            Work::Webhook => return self.server.create_and_deliver(times),
            Work::Group(orders) => {
                return (0..times).for_each(|_| self.server.create_group(orders));
            }
            Work::InMemory => return (0..times).for_each(|_| self.server.create_without_socket()),
            _ => {}
        }
        for _ in 0..times {
            self.next += 1;
            match work {
                Work::Create => self.server.create(),
                Work::CreateWithMail => self.server.create_with_emails(),
                Work::Repeat => self.server.repeat_order(self.next),
                Work::List => self.server.get("parcels"),
                Work::ListByStatus => self.server.get("parcels?status=LABEL_GENERATED"),
                Work::Tracking => self.get("tracking/NUMBER"),
                Work::LabelPdf => self.get("labels/NUMBER/download?format=pdf"),
                Work::LabelPng => self.get("labels/NUMBER/download?format=png"),
                Work::LabelZpl => self.get("labels/NUMBER/download?format=zpl"),
                Work::Webhook | Work::Group(_) | Work::InMemory => {}
            }
        }
    }

    fn get(&mut self, path: &str) {
        let path = path.replace("NUMBER", self.server.tracking_number(self.next));
        self.server.get(&path);
    }

    pub(crate) fn finish(self) {
        self.server.finish();
    }
}
