//! GET_TOPIC, GET_TOPICS, CREATE_TOPIC, DELETE_TOPIC, CREATE_PARTITIONS, DELETE_PARTITIONS.

use crate::scene::{named, number, refused, Scene, TOPIC};
use iggy::client::{PartitionClient, TopicClient};
use iggy::identifier::Identifier;
use iggy::messages::send_messages::Partitioning;
use iggy::partitions::create_partitions::CreatePartitions;
use iggy::partitions::delete_partitions::DeletePartitions;
use iggy::topics::create_topic::CreateTopic;
use iggy::topics::delete_topic::DeleteTopic;
use iggy::topics::get_topic::GetTopic;
use iggy::topics::get_topics::GetTopics;

const TOPIC_ID_NOT_FOUND: u32 = 2010;
const TOPIC_NAME_NOT_FOUND: u32 = 2011;
const TOPIC_ID_ALREADY_EXISTS: u32 = 2012;
const TOPIC_NAME_ALREADY_EXISTS: u32 = 2013;
const INVALID_TOPIC_ID: u32 = 2016;

pub async fn play(scene: &Scene) {
    let client = scene.with_topic(2).await;
    let get = |topic_id: Identifier| GetTopic { stream_id: scene.stream_id(), topic_id };
    let partition_ids = || async {
        let topic = client.get_topic(&get(number(TOPIC))).await.unwrap();
        topic.partitions.iter().map(|one| one.id).collect::<Vec<u32>>()
    };

    assert_eq!(refused(client.create_topic(&scene.new_topic(TOPIC, "t2", 1))).await, TOPIC_ID_ALREADY_EXISTS);
    assert_eq!(refused(client.create_topic(&scene.new_topic(2, "T1", 1))).await, TOPIC_NAME_ALREADY_EXISTS);
    assert_eq!(refused(client.create_topic(&scene.new_topic(0, "t2", 1))).await, INVALID_TOPIC_ID);
    let expiring = CreateTopic { message_expiry: Some(3600), ..scene.new_topic(5, "expiring", 1) };
    client.create_topic(&expiring).await.unwrap();

    scene.send(&client, Partitioning::partition_id(2), &["one", "two"]).await;
    for topic_id in [number(TOPIC), named("t1")] {
        let topic = client.get_topic(&get(topic_id)).await.unwrap();
        assert_eq!((topic.id, topic.name.as_str(), topic.partitions_count), (TOPIC, "t1", 2));
        assert_eq!((topic.message_expiry, topic.messages_count), (None, 2));
        assert!(topic.created_at > 1_600_000_000_000_000 && topic.size_bytes > 0);
        let counts: Vec<(u32, u64, u64)> =
            topic.partitions.iter().map(|one| (one.id, one.current_offset, one.messages_count)).collect();
        assert_eq!(counts, [(1, 0, 0), (2, 1, 2)]);
        assert!(topic.partitions.iter().all(|one| one.segments_count == 1 && one.created_at > 0));
        assert!(topic.partitions[1].size_bytes > 0);
    }
    let topics = client.get_topics(&GetTopics { stream_id: scene.stream_id() }).await.unwrap();
    let found: Vec<(u32, &str, Option<u32>)> =
        topics.iter().map(|one| (one.id, one.name.as_str(), one.message_expiry)).collect();
    assert_eq!(found, [(1, "t1", None), (5, "expiring", Some(3600))]);

    let more = CreatePartitions { stream_id: scene.stream_id(), topic_id: number(TOPIC), partitions_count: 3 };
    client.create_partitions(&more).await.unwrap();
    assert_eq!(partition_ids().await, [1, 2, 3, 4, 5]);
    let fewer = DeletePartitions { stream_id: scene.stream_id(), topic_id: number(TOPIC), partitions_count: 2 };
    client.delete_partitions(&fewer).await.unwrap();
    assert_eq!(partition_ids().await, [1, 2, 3]);

    let delete = DeleteTopic { stream_id: scene.stream_id(), topic_id: named("expiring") };
    client.delete_topic(&delete).await.unwrap();
    assert_eq!(refused(client.delete_topic(&delete)).await, TOPIC_NAME_NOT_FOUND);
    assert_eq!(refused(client.get_topic(&get(number(5)))).await, TOPIC_ID_NOT_FOUND);
}
