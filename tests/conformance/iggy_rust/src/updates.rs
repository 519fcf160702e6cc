//! UPDATE_STREAM and UPDATE_TOPIC, which the release of the month after has: the end of the dialect.

use crate::scene::Scene;
use iggy_next::client::{Client, StreamClient, TopicClient};
use iggy_next::identifier::Identifier;
use iggy_next::streams::get_stream::GetStream;
use iggy_next::streams::update_stream::UpdateStream;
use iggy_next::tcp::client::TcpClient;
use iggy_next::topics::get_topic::GetTopic;
use iggy_next::topics::update_topic::UpdateTopic;

pub async fn play(scene: &Scene) {
    scene.with_topic(1).await;
    let mut client = TcpClient::new(&scene.address).unwrap();
    client.connect().await.unwrap();
    let stream_id = || Identifier::numeric(scene.stream).unwrap();
    let later = format!("{}-later", scene.name());
    client.update_stream(&UpdateStream { stream_id: stream_id(), name: later.clone() }).await.unwrap();
    let stream = client.get_stream(&GetStream { stream_id: Identifier::named(&later).unwrap() }).await.unwrap();
    assert_eq!((stream.id, stream.name, stream.topics_count), (scene.stream, later, 1));

    let update = UpdateTopic {
        stream_id: stream_id(),
        topic_id: Identifier::named("t1").unwrap(),
        message_expiry: Some(60),
        name: "t2".to_string(),
    };
    client.update_topic(&update).await.unwrap();
    let get = GetTopic { stream_id: stream_id(), topic_id: Identifier::numeric(1).unwrap() };
    let topic = client.get_topic(&get).await.unwrap();
    assert_eq!((topic.name.as_str(), topic.message_expiry), ("t2", Some(60)));
}
