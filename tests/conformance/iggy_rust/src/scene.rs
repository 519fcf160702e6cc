//! What the scenarios share: a stream that is nobody else's, and short forms of the client's calls.

use bytes::Bytes;
use iggy::client::{Client, MessageClient, StreamClient, TopicClient};
use iggy::consumer::Consumer;
use iggy::error::Error;
use iggy::identifier::Identifier;
use iggy::messages::poll_messages::{PollMessages, PollingStrategy};
use iggy::messages::send_messages::{Message, Partitioning, SendMessages};
use iggy::models::messages::PolledMessages;
use iggy::streams::create_stream::CreateStream;
use iggy::tcp::client::TcpClient;
use iggy::topics::create_topic::CreateTopic;
use std::fmt::Debug;
use std::future::Future;

/// The topic of the scenarios that need but one.
pub const TOPIC: u32 = 1;

pub struct Scene {
    pub address: String,
    /// The stream's number, which clients of this dialect choose.
    pub stream: u32,
}

impl Scene {
    pub fn new(address: &str, stream: u32) -> Self {
        Scene { address: address.to_string(), stream }
    }

    pub fn name(&self) -> String {
        format!("rust-{}", self.stream)
    }

    pub fn stream_id(&self) -> Identifier {
        number(self.stream)
    }

    pub async fn client(&self) -> TcpClient {
        let mut client = TcpClient::new(&self.address).unwrap();
        client.connect().await.unwrap();
        client
    }

    /// A client, and a topic with some partitions.
    pub async fn with_topic(&self, partitions_count: u32) -> TcpClient {
        let client = self.client().await;
        let stream = CreateStream { stream_id: self.stream, name: self.name() };
        client.create_stream(&stream).await.unwrap();
        client.create_topic(&self.new_topic(TOPIC, "t1", partitions_count)).await.unwrap();
        client
    }

    pub fn new_topic(&self, topic_id: u32, name: &str, partitions_count: u32) -> CreateTopic {
        CreateTopic {
            stream_id: self.stream_id(),
            topic_id,
            partitions_count,
            message_expiry: None,
            name: name.to_string(),
        }
    }

    pub fn batch(&self, partitioning: Partitioning, messages: Vec<Message>) -> SendMessages {
        SendMessages { stream_id: self.stream_id(), topic_id: number(TOPIC), partitioning, messages }
    }

    pub async fn send(&self, client: &TcpClient, partitioning: Partitioning, values: &[&str]) {
        let messages = values.iter().map(|value| message(value)).collect();
        client.send_messages(&mut self.batch(partitioning, messages)).await.unwrap();
    }

    pub fn poll_of(
        &self,
        consumer: Consumer,
        partition_id: Option<u32>,
        strategy: PollingStrategy,
        count: u32,
    ) -> PollMessages {
        PollMessages {
            consumer,
            stream_id: self.stream_id(),
            topic_id: number(TOPIC),
            partition_id,
            strategy,
            count,
            auto_commit: false,
        }
    }

    pub async fn poll(
        &self,
        client: &TcpClient,
        partition_id: u32,
        strategy: PollingStrategy,
        count: u32,
    ) -> PolledMessages {
        let command = self.poll_of(Consumer::new(1), Some(partition_id), strategy, count);
        client.poll_messages(&command).await.unwrap()
    }
}

pub fn number(value: u32) -> Identifier {
    Identifier::numeric(value).unwrap()
}

pub fn named(value: &str) -> Identifier {
    Identifier::named(value).unwrap()
}

pub fn message(value: &str) -> Message {
    Message::new(None, Bytes::from(value.to_string()), None)
}

pub fn values(polled: &PolledMessages) -> Vec<String> {
    let text = |one: &iggy::models::messages::Message| String::from_utf8(one.payload.to_vec()).unwrap();
    polled.messages.iter().map(text).collect()
}

pub fn offsets(polled: &PolledMessages) -> Vec<u64> {
    polled.messages.iter().map(|one| one.offset).collect()
}

/// The status with which the server refuses something.
pub async fn refused<T: Debug>(outcome: impl Future<Output = Result<T, Error>>) -> u32 {
    match outcome.await {
        Err(Error::InvalidResponse(status)) => status,
        other => panic!("it was not refused: {other:?}"),
    }
}
