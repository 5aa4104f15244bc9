"""The ROS 2 controller node: parameters, topics, the tick. It holds no formula."""
