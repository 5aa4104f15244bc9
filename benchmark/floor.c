/* The floor of the loop benchmark in C: answers every joint state with the same bytes.

   What a loop without an interpreter does when it computes nothing, as rcl means it: one wait set
   on a subscription with a participant of its own, one take, one publish. It is linked to
   the same libraries, and gives its threads the priorities that rnea_controller gives its own. */
#define _GNU_SOURCE
#include <dirent.h>
#include <rcl/rcl.h>
#include <rosidl_runtime_c/message_type_support_struct.h>
#include <sched.h>
#include <sensor_msgs/msg/joint_state.h>
#include <signal.h>
#include <std_msgs/msg/float64_multi_array.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

enum { JOINTS = 7, HEADER = 20, SIZE = HEADER + 8 * JOINTS, PRIORITY = 50 };

static volatile sig_atomic_t running = 1;

static void end(int signal_number) { (void)signal_number, running = 0; }

static void must(rcl_ret_t answer, const char *what) {
  if (answer == RCL_RET_OK) return;
  fprintf(stderr, "%s: %d\n", what, answer);
  exit(1);
}

static void make_node(rcl_context_t *context, rcl_node_t *node, const char *name) {
  rcl_init_options_t options = rcl_get_zero_initialized_init_options();
  must(rcl_init_options_init(&options, rcl_get_default_allocator()), "options");
  *context = rcl_get_zero_initialized_context();
  must(rcl_init(0, NULL, &options, context), "context");
  *node = rcl_get_zero_initialized_node();
  rcl_node_options_t of_node = rcl_node_get_default_options();
  of_node.enable_rosout = false;
  must(rcl_node_init(node, name, "", context, &of_node), "node");
}

static void raise_priorities(void) {
  DIR *tasks = opendir("/proc/self/task");
  for (struct dirent *task; tasks && (task = readdir(tasks));) {
    if (task->d_name[0] == '.') continue;
    char path[300], name[32] = "";
    snprintf(path, sizeof path, "/proc/self/task/%s/comm", task->d_name);
    FILE *comm = fopen(path, "r");
    if (comm && fgets(name, sizeof name, comm)) {}
    if (comm) fclose(comm);
    int less = strncmp(name, "dds.asyn", 8) ? 1 : 2;
    struct sched_param parameters = {PRIORITY - less};
    sched_setscheduler(atoi(task->d_name), SCHED_FIFO | SCHED_RESET_ON_FORK, &parameters);
  }
  if (tasks) closedir(tasks);
  struct sched_param own = {PRIORITY};
  sched_setscheduler(0, SCHED_FIFO | SCHED_RESET_ON_FORK, &own);
  mlockall(MCL_CURRENT | MCL_FUTURE | MCL_ONFAULT);
}

int run(void) {
  signal(SIGTERM, end);
  signal(SIGINT, end);
  rcl_context_t of_commands, of_states;
  rcl_node_t commander, listener;
  make_node(&of_commands, &commander, "rnea_controller");
  make_node(&of_states, &listener, "_rnea_controller_joint_states");

  rcl_publisher_t publisher = rcl_get_zero_initialized_publisher();
  rcl_publisher_options_t publishing = rcl_publisher_get_default_options();
  publishing.qos.depth = 1;
  must(rcl_publisher_init(&publisher, &commander,
                          ROSIDL_GET_MSG_TYPE_SUPPORT(std_msgs, msg, Float64MultiArray),
                          "effort_controller/commands", &publishing), "publisher");
  rcl_subscription_t states = rcl_get_zero_initialized_subscription();
  rcl_subscription_options_t listening = rcl_subscription_get_default_options();
  listening.qos.depth = 1;
  listening.qos.reliability = RMW_QOS_POLICY_RELIABILITY_BEST_EFFORT;
  must(rcl_subscription_init(&states, &listener,
                             ROSIDL_GET_MSG_TYPE_SUPPORT(sensor_msgs, msg, JointState),
                             "joint_states", &listening), "subscription");
  rcl_wait_set_t wait_set = rcl_get_zero_initialized_wait_set();
  must(rcl_wait_set_init(&wait_set, 1, 0, 0, 0, 0, 0, &of_states, rcl_get_default_allocator()),
       "wait set");

  rcl_allocator_t allocator = rcl_get_default_allocator();
  rcl_serialized_message_t state = rmw_get_zero_initialized_serialized_message();
  must(rmw_serialized_message_init(&state, 4096, &allocator), "message");
  uint8_t bytes[SIZE] = {0, 1}; /* little endian; no dimensions, no offset */
  bytes[HEADER - 8] = JOINTS;
  rcl_serialized_message_t command = rmw_get_zero_initialized_serialized_message();
  command.buffer = bytes;
  command.buffer_length = command.buffer_capacity = SIZE;

  raise_priorities();
  rmw_message_info_t info;
  while (running) {
    must(rcl_wait_set_clear(&wait_set), "clear");
    must(rcl_wait_set_add_subscription(&wait_set, &states, NULL), "add");
    rcl_ret_t answer = rcl_wait(&wait_set, RCL_MS_TO_NS(100));
    if (answer != RCL_RET_OK && answer != RCL_RET_TIMEOUT) break;
    if (rcl_take_serialized_message(&states, &state, &info, NULL) == RCL_RET_OK)
      must(rcl_publish_serialized_message(&publisher, &command, NULL), "publish");
  }
  return 0;
}
