{{- define "sluice.name" -}}
{{- printf "%s-%s" .Release.Name .Chart.Name | trunc 50 | trimSuffix "-" | replace "sluice-sluice" "sluice" -}}
{{- end -}}

{{- define "sluice.selector" -}}
app.kubernetes.io/name: sluice
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end -}}

{{- define "sluice.labels" -}}
{{ include "sluice.selector" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version }}
{{- end -}}

{{- define "sluice.account" -}}
{{- default (include "sluice.name" .) .Values.serviceAccount.name -}}
{{- end -}}

{{/* The pod, which a Deployment and a StatefulSet have in common. */}}
{{- define "sluice.pod" -}}
{{- $name := include "sluice.name" . -}}
metadata:
  labels:
    {{- include "sluice.selector" . | nindent 4 }}
    {{- with .Values.podLabels }}{{ toYaml . | nindent 4 }}{{ end }}
  annotations:
    sluice.dev/config: {{ include "sluice.config" . | sha256sum }}
    {{- with .Values.podAnnotations }}{{ toYaml . | nindent 4 }}{{ end }}
spec:
  serviceAccountName: {{ include "sluice.account" . }}
  automountServiceAccountToken: false
  terminationGracePeriodSeconds: {{ add .Values.drainSeconds 15 }}
  securityContext:
    runAsNonRoot: true
    runAsUser: 65532
    runAsGroup: 65532
    fsGroup: 65532
    seccompProfile: {type: RuntimeDefault}
  {{- with .Values.imagePullSecrets }}
  imagePullSecrets: {{ toYaml . | nindent 4 }}
  {{- end }}
  containers:
    - name: sluice
      image: "{{ .Values.image.repository }}:{{ default .Chart.AppVersion .Values.image.tag }}"
      imagePullPolicy: {{ .Values.image.pullPolicy }}
      args:
        - serve
        - --config=/etc/sluice/config/sluice.yaml
        - --listen=0.0.0.0:7979
        - --host={{ $name }}
        - --host={{ $name }}.{{ .Release.Namespace }}
        - --host={{ $name }}.{{ .Release.Namespace }}.svc
        - --host={{ $name }}.{{ .Release.Namespace }}.svc.cluster.local
        {{- range .Values.hosts }}
        - --host={{ . }}
        {{- end }}
        - --log={{ .Values.log.format }}
        - --log-level={{ .Values.log.level }}
        {{- if .Values.log.requests }}
        - --log-requests
        {{- end }}
        - --drain={{ .Values.drainSeconds }}s
        {{- if .Values.keda.enabled }}
        - --keda-listen=0.0.0.0:{{ .Values.keda.port }}
        {{- if .Values.keda.tlsSecret }}
        - --keda-tls-cert=/etc/sluice/keda/tls.crt
        - --keda-tls-key=/etc/sluice/keda/tls.key
        - --keda-tls-ca=/etc/sluice/keda/ca.crt
        {{- else }}
        - --keda-insecure
        {{- end }}
        {{- end }}
        {{- range .Values.extraArgs }}
        - {{ . | quote }}
        {{- end }}
      env:
        {{- if eq .Values.store.kind "redis" }}
        - name: SLUICE_STORE
          value: {{ .Values.store.redis.url | quote }}
        {{- else }}
        - name: SLUICE_STORE
          value: "file:"
        {{- end }}
        - name: XDG_STATE_HOME
          value: /state
        {{- range $i, $t := .Values.tokens.list }}
        - name: SLUICE_TOKEN_HASH_{{ $i }}
          valueFrom:
            secretKeyRef: {name: {{ $.Values.tokens.secret | quote }}, key: {{ $t.hashKey | quote }}}
        {{- end }}
        {{- with .Values.extraEnv }}{{ toYaml . | nindent 8 }}{{ end }}
      envFrom:
        {{- with .Values.store.redis.secret }}
        - secretRef: {name: {{ . | quote }}}
        {{- end }}
        {{- with .Values.providerKeys.secret }}
        - secretRef: {name: {{ . | quote }}}
        {{- end }}
      ports:
        - {name: http, containerPort: 7979, protocol: TCP}
        {{- if .Values.keda.enabled }}
        - {name: grpc, containerPort: {{ .Values.keda.port }}, protocol: TCP}
        {{- end }}
      startupProbe:
        httpGet: {path: /healthz, port: http}
        periodSeconds: 2
        failureThreshold: 30
      livenessProbe:
        httpGet: {path: /healthz, port: http}
        periodSeconds: 10
        timeoutSeconds: 5
        failureThreshold: 6
      readinessProbe:
        httpGet: {path: /readyz, port: http}
        periodSeconds: 5
        timeoutSeconds: 6
        failureThreshold: 2
      resources: {{ toYaml .Values.resources | nindent 8 }}
      securityContext:
        allowPrivilegeEscalation: false
        readOnlyRootFilesystem: true
        capabilities: {drop: [ALL]}
      volumeMounts:
        - {name: config, mountPath: /etc/sluice/config, readOnly: true}
        - {name: state, mountPath: /state}
        {{- if and .Values.keda.enabled .Values.keda.tlsSecret }}
        - {name: keda, mountPath: /etc/sluice/keda, readOnly: true}
        {{- end }}
  volumes:
    - name: config
      configMap: {name: {{ $name }}}
    {{- if eq .Values.store.kind "redis" }}
    - name: state
      emptyDir: {sizeLimit: 1Gi}
    {{- end }}
    {{- if and .Values.keda.enabled .Values.keda.tlsSecret }}
    - name: keda
      secret: {secretName: {{ .Values.keda.tlsSecret | quote }}}
    {{- end }}
  {{- with .Values.nodeSelector }}
  nodeSelector: {{ toYaml . | nindent 4 }}
  {{- end }}
  {{- with .Values.tolerations }}
  tolerations: {{ toYaml . | nindent 4 }}
  {{- end }}
  {{- with .Values.affinity }}
  affinity: {{ toYaml . | nindent 4 }}
  {{- end }}
  {{- with .Values.topologySpreadConstraints }}
  topologySpreadConstraints: {{ toYaml . | nindent 4 }}
  {{- end }}
{{- end -}}

{{/* The configuration, with tokens whose hashes come from variables. */}}
{{- define "sluice.config" -}}
{{- $tokens := list -}}
{{- range $i, $t := .Values.tokens.list -}}
{{- $one := dict "name" $t.name "hash" (printf "${SLUICE_TOKEN_HASH_%d}" $i) -}}
{{- with $t.class }}{{ $_ := set $one "class" . }}{{ end -}}
{{- with $t.agent }}{{ $_ := set $one "agent" . }}{{ end -}}
{{- $tokens = append $tokens $one -}}
{{- end -}}
{{- $config := deepCopy .Values.config -}}
{{- if $tokens }}{{ $_ := set $config "tokens" $tokens }}{{ end -}}
{{- toYaml $config -}}
{{- end -}}
