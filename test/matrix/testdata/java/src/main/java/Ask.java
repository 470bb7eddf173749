import java.util.ArrayList;
import java.util.concurrent.Callable;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import org.springframework.ai.chat.model.ChatModel;
import org.springframework.boot.SpringApplication;
import org.springframework.boot.WebApplicationType;
import org.springframework.boot.autoconfigure.EnableAutoConfiguration;
import org.springframework.context.annotation.Configuration;

/** Makes ASK_CALLS calls of each kind at once with Spring AI, whole and streamed, and prints every answer as a line of JSON. */
@Configuration
@EnableAutoConfiguration
class Ask {
  public static void main(String[] args) throws Exception {
    String prompt = "Say something about herons.";
    var application = new SpringApplication(Ask.class);
    application.setWebApplicationType(WebApplicationType.NONE);
    try (var context = application.run(args)) {
      ChatModel chat = context.getBean(ChatModel.class);
      Callable<String> whole = () -> line("whole", chat.call(prompt));
      Callable<String> streamed = () -> line("streamed", String.join("", chat.stream(prompt).collectList().block()));
      var pool = Executors.newCachedThreadPool();
      var answers = new ArrayList<Future<String>>();
      for (int i = 0; i < Integer.parseInt(System.getenv("ASK_CALLS")); i++) {
        answers.add(pool.submit(whole));
        answers.add(pool.submit(streamed));
      }
      for (var answer : answers) System.out.println(answer.get());
      pool.shutdown();
    }
  }

  static String line(String kind, String text) {
    return "{\"kind\":\"" + kind + "\",\"text\":\"" + text + "\"}";
  }
}
